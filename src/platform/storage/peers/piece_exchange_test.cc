// Covers: peer_client.cc, peer_server.cc, peer_stream.cc, piece_map.h.
#include "platform/storage/peers/piece_exchange.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/test_patience.h"
#include "platform/storage/peers/peers_for_tests.h"

namespace tutti::storage {
namespace {

// PieceServing has one end that serves and one that asks.
class PieceServing : public ::testing::Test {
 protected:
  void Serve(std::string bytes, const std::string& sha256 = "", PeerSecret secret = {"t", "s"}) {
    auto server = PeerServer::Start("127.0.0.1", port_, map_, std::move(secret),
                                    [bytes](int64_t, std::span<char> out) {
                                      std::copy_n(bytes.begin(), out.size(), out.begin());
                                      return absl::OkStatus();
                                    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Publish(0, "v1", sha256);
  }
  absl::Status Ask(const std::string& version = "v1") {
    std::vector<char> out(1000);
    const absl::Status status = client_.Fetch(0, 0, version, out);
    got_ = std::string(out.begin(), out.end());
    return status;
  }

  const int port_ = FreePort();
  const std::vector<StoredObject> objects_ = {{"large", 1500}};
  const PieceMap map_{objects_, 1000, 0, 2};
  std::unique_ptr<PeerServer> server_;
  PeerClient client_{PeersOf(1, 2, port_), {"t", "s"}};
  std::string got_;
};

TEST_F(PieceServing, APieceComesAsItWasFetched) {
  Serve(PieceBytes(1000), base::Hex(base::Sha256Of(PieceBytes(1000))));
  const absl::Status asked = Ask();
  EXPECT_TRUE(asked.ok()) << asked;
  EXPECT_EQ(got_, PieceBytes(1000));
  EXPECT_EQ(server_->bytes_sent(), 1000);
  EXPECT_THAT(client_.TellDone(), testing::ElementsAre(0));
  server_->AwaitDone({1}, base::Patient(absl::Seconds(60)));
}

TEST_F(PieceServing, APieceThatIsNotThereYetIsAwaited) {
  Serve(PieceBytes(1000));
  std::vector<char> out(500);
  std::atomic<bool> has_come = false;
  std::thread asks([&] {
    EXPECT_TRUE(client_.Fetch(0, 1, "v1", out).ok());
    has_come = true;
  });
  EXPECT_TRUE(Ask().ok()) << "which another connection asks for";
  EXPECT_FALSE(has_come);
  server_->Publish(1, "v1", "");
  asks.join();
  EXPECT_EQ(std::string(out.begin(), out.end()), PieceBytes(1000).substr(0, 500));
}

TEST_F(PieceServing, WhatADiskHasDamagedIsNotTaken) {
  Serve(PieceBytes(1000, 3), base::Hex(base::Sha256Of(PieceBytes(1000))));
  EXPECT_TRUE(absl::IsDataLoss(Ask()));
  EXPECT_TRUE(absl::IsUnavailable(Ask())) << "it is asked no more";
}

TEST_F(PieceServing, AnotherVersionIsNotTaken) {
  Serve(PieceBytes(1000));
  EXPECT_TRUE(absl::IsNotFound(Ask("v2")));
  EXPECT_TRUE(Ask("v1").ok()) << "and it is asked on";
}

TEST_F(PieceServing, WhoHasAnotherTokenOrAnotherListGetsNothing) {
  for (const PeerSecret& secret : {PeerSecret{"of another job", "s"}, PeerSecret{"t", "other"}}) {
    Serve(PieceBytes(1000), "", secret);
    Peers peers = PeersOf(1, 2, port_);
    peers.first_contact = absl::ZeroDuration();
    PeerClient client(peers, {"t", "s"});
    std::vector<char> out(1000);
    EXPECT_TRUE(absl::IsPermissionDenied(client.Fetch(0, 0, "v1", out)));
    auto stream = PeerStream::Connect("127.0.0.1", port_);
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_TRUE(stream->SendLine("tutti-pieces 1 00").ok());
    ASSERT_TRUE(stream->ReceiveLine().ok());
    ASSERT_TRUE(stream->SendLine("no proof").ok());
    static_cast<void>(stream->SendLine("get 0 v1"));
    EXPECT_TRUE(absl::IsUnavailable(stream->ReceiveLine().status())) << "it is closed";
    EXPECT_EQ(server_->bytes_sent(), 0);
    server_.reset();
  }
}

TEST_F(PieceServing, ConnectionsThatHaveEndedTakeNoPlace) {
  Serve(PieceBytes(1000));
  for (int i = 0; i < 1100; ++i) {  // more than are served at the same time
    const auto stranger = PeerStream::Connect("127.0.0.1", port_);
    ASSERT_TRUE(stranger.ok()) << i << " " << stranger.status();
  }
  // Once it has seen that enough of them have.
  absl::Status asked;
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    PeerClient client(PeersOf(1, 2, port_), {"t", "s"});
    std::vector<char> out(1000);
    asked = client.Fetch(0, 0, "v1", out);
    return asked.ok();
  })) << asked;
}

TEST(PieceMap, EachPieceHasOnePlaceAndOneNode) {
  const std::vector<StoredObject> objects = {{"a", 2500}, {"b", 0}, {"c", 1000}, {"d", 1001}};
  const PieceMap map(objects, 1000, 1, 3);
  EXPECT_EQ(map.count(), 3 + 1 + 1 + 2);
  EXPECT_TRUE(map.IsLarge(0) && !map.IsLarge(1) && !map.IsLarge(2) && map.IsLarge(3));
  int64_t next = 0;
  for (size_t object = 0; object < objects.size(); ++object) {
    for (int64_t at = 0, range = 0; at < std::max<int64_t>(objects[object].bytes, 1);
         at += 1000, ++range, ++next) {
      EXPECT_EQ(map.PieceOf(object, range), next);
      EXPECT_EQ(map.OwnerOf(next), next % 3);
      const PieceMap::Place place = map.PlaceOf(next);
      EXPECT_EQ(place.object, object);
      EXPECT_EQ(place.offset, at);
      EXPECT_EQ(place.bytes, std::min<int64_t>(1000, objects[object].bytes - at));
    }
  }
  EXPECT_EQ(next, map.count());
}

}  // namespace
}  // namespace tutti::storage
