// Nodes of a gang, each a fetch of its own with its own address of the loopback.
// Covers: fetch_objects.cc, part_file.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/storage/peers/peers_for_tests.h"
#include "platform/storage/peers/piece_exchange.h"
#include "platform/storage/transfer/fetch_objects.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

class PeersTest : public ::testing::Test {
 protected:
  fs::path FolderOf(int node) const { return folder_.path() / absl::StrCat(node); }
  absl::Status Fetch(int node, const std::optional<Peers>& peers) {
    const auto survey =
        SurveyPlace(store_, {spec::StoreKind::kS3, "", "b", "", "", "data"}, PlaceType::kAny, {});
    if (!survey.ok()) return survey.status();
    FetchOptions options{.folder = FolderOf(node), .connections = 4, .range_bytes = 1000};
    options.peers = peers;
    return FetchObjects(store_, *survey, options).status();
  }
  // Fetches by these nodes at the same time.
  std::vector<absl::Status> FetchAll(const std::vector<Peers>& all) {
    std::vector<absl::Status> ends(all.size());
    std::vector<std::thread> nodes;
    for (size_t i = 0; i < all.size(); ++i) {
      nodes.emplace_back([&, i] { ends[i] = Fetch(all[i].node, all[i]); });
    }
    for (std::thread& node : nodes) node.join();
    return ends;
  }
  std::string File(int node, const std::string& path) const {
    return base::ReadFile(FolderOf(node) / path).value_or("(none)");
  }

  void FetchBesideAWrongNode();

  const int port_ = FreePort();
  const base::TemporaryDirectory folder_;
  MemoryStore store_;
};

TEST_F(PeersTest, TakeEachByteFromTheStoreOnceAndAllHaveAll) {
  store_.Set("data/large", PieceBytes(10'500));
  store_.Set("data/larger", PieceBytes(20'001, 11));
  int64_t bytes = 10'500 + 20'001;
  for (int i = 0; i < 20; ++i) {
    store_.Set(absl::StrCat("data/small/", i), PieceBytes(100 + i));
    bytes += 100 + i;
  }
  store_.Set("data/empty", "");
  for (const absl::Status& end :
       FetchAll({PeersOf(0, 3, port_), PeersOf(1, 3, port_), PeersOf(2, 3, port_)})) {
    EXPECT_TRUE(end.ok()) << end;
  }
  for (int node = 0; node < 3; ++node) {
    EXPECT_EQ(File(node, "large"), PieceBytes(10'500)) << node;
    EXPECT_EQ(File(node, "larger"), PieceBytes(20'001, 11)) << node;
    EXPECT_EQ(File(node, "empty"), "");
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(File(node, absl::StrCat("small/", i)), PieceBytes(100 + i)) << node << " " << i;
    }
  }
  EXPECT_EQ(store_.bytes_read(), bytes);
}

TEST_F(PeersTest, ANodeThatIsNotThereIsDoneWithout) {
  store_.Set("data/large", PieceBytes(30'000));
  std::vector<Peers> two = {PeersOf(0, 3, port_), PeersOf(1, 3, port_)};
  for (Peers& peers : two) peers.first_contact = absl::ZeroDuration();
  for (const absl::Status& end : FetchAll(two)) EXPECT_TRUE(end.ok()) << end;
  for (int node : {0, 1}) EXPECT_EQ(File(node, "large"), PieceBytes(30'000));
}

TEST_F(PeersTest, OneThatHasAllFromBeforeGivesWhatItHasAHashOf) {
  for (int i = 0; i < 20; ++i) store_.Set(absl::StrCat("data/small/", i), PieceBytes(300 + i));
  ASSERT_TRUE(Fetch(0, std::nullopt).ok());
  const int64_t before = store_.bytes_read();
  for (const absl::Status& end : FetchAll({PeersOf(0, 2, port_), PeersOf(1, 2, port_)})) {
    EXPECT_TRUE(end.ok()) << end;
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(File(1, absl::StrCat("small/", i)), PieceBytes(300 + i)) << i;
  }
  EXPECT_LE(store_.bytes_read() - before, before / 2 + 1000) << "the half that is its own";
}

// After a power failure a file may have the right size, and nothing of what was written.
TEST_F(PeersTest, WhatADiskHasLostSinceGoesToNobody) {
  store_.Set("data/large", PieceBytes(30'000));
  store_.Set("data/small", PieceBytes(300));
  ASSERT_TRUE(Fetch(0, std::nullopt).ok());
  for (const auto& [name, bytes] : {std::pair("large", 30'000), std::pair("small", 300)}) {
    std::ofstream(FolderOf(0) / name, std::ios::binary) << std::string(bytes, 'x');
  }
  for (const absl::Status& end : FetchAll({PeersOf(0, 2, port_), PeersOf(1, 2, port_)})) {
    EXPECT_TRUE(end.ok()) << end;
  }
  EXPECT_EQ(File(1, "large"), PieceBytes(30'000));
  EXPECT_EQ(File(1, "small"), PieceBytes(300));
}

// Node 0 has wrong bytes of all, and sends the hash of these with them; node 1 fetches.
void PeersTest::FetchBesideAWrongNode() {
  const auto survey =
      SurveyPlace(store_, {spec::StoreKind::kS3, "", "b", "", "", "data"}, PlaceType::kAny, {});
  ASSERT_TRUE(survey.ok()) << survey.status();
  std::atomic<int> given = 0;
  PieceExchange wrong(PeersOf(0, 2, port_), survey->objects, DigestOf(survey->objects, 0), 1000,
                      [&](const PieceMap::Place&, std::span<char> out) {
                        std::fill(out.begin(), out.end(), '?');
                        ++given;
                        return absl::OkStatus();
                      });
  for (int64_t piece = 0; piece < wrong.map().count(); ++piece) {
    const std::string& path = survey->objects[wrong.map().PlaceOf(piece).object].path;
    const auto reader = store_.Open(absl::StrCat("data/", path));
    ASSERT_TRUE(reader.ok()) << reader.status();
    wrong.Publish(piece, (*reader)->object().etag, "");
  }
  std::thread serves([&] { wrong.AwaitOthers(); });
  const absl::Status end = Fetch(1, PeersOf(1, 2, port_));
  serves.join();
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_GT(given, 0);
}

TEST_F(PeersTest, AnObjectThatFailsItsCheckIsFetchedFromTheStoreAlone) {
  store_.Set("data/large", PieceBytes(10'500));
  for (int i = 0; i < 6; ++i) store_.Set(absl::StrCat("data/small/", i), PieceBytes(300));
  FetchBesideAWrongNode();
  EXPECT_EQ(File(1, "large"), PieceBytes(10'500));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(File(1, absl::StrCat("small/", i)), PieceBytes(300)) << i;
}

// Read again, it differs from what the other node gave; not each time that the store is asked.
TEST_F(PeersTest, SoIsOneWhoseETagMerelyLooksLikeAnMd5) {
  store_.set_md5(true, false);
  store_.Set("data/large", PieceBytes(10'500));
  FetchBesideAWrongNode();
  EXPECT_EQ(File(1, "large"), PieceBytes(10'500));
}

}  // namespace
}  // namespace tutti::storage
