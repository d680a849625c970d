// Covers: store_requests.cc. What a store answers that no stand-in does; tests/storage/ asks moto's
// and Azurite.
#include "platform/storage/direct/direct_objects.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/threads/retry_after.h"
#include "base/unique_fd.h"
#include "http/server/server.h"

namespace tutti::storage {
namespace {

// DirectObjectsTest has a server that answers as it is told to, and notes what it was asked last.
class DirectObjectsTest : public ::testing::Test {
 protected:
  DirectObjectsTest() {
    auto server = http::Server::Start({}, [this](const http::Request& request, http::Connection&) {
      absl::MutexLock lock(&mutex_);
      ++asked_;
      method_ = request.method;
      path_ = request.path;
      headers_ = request.headers;
      http::Response response{.status = status_.load(), .body = content_};
      if (method_ == "HEAD" && status_of_head_ != 0) response.status = status_of_head_;
      response.headers = answer_;
      if (method_ == "GET" && !tag_of_get_.empty()) response.headers[0].second = tag_of_get_;
      if (headers_.contains("range")) Cut(response);
      return response;
    });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    direct_ = Make(spec::StoreKind::kS3, StoreWords::kS3, /*has_key=*/true);
  }

  std::unique_ptr<DirectObjects> Make(spec::StoreKind kind, StoreWords words, bool has_key) {
    spec::DataPlace place{kind, words == StoreWords::kAzure ? "acme" : "", "bucket"};
    place.endpoint = server_->url();
    Credentials key{words == StoreWords::kAzure ? spec::CredentialKind::kAccountKey
                                                : spec::CredentialKind::kAccessKey};
    key.access_key_id = "AKIA";
    key.secret_access_key = "secret";
    key.account_key = "YSBrZXk=";
    return std::make_unique<DirectObjects>(
        std::make_unique<StoreRequests>(place, has_key ? key : Credentials{}, words, std::nullopt));
  }

  // "bytes=2-5" of the content, as a server that heeds it.
  void Cut(http::Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!heeds_ranges_ || response.status != 200) return;
    const std::vector<std::string> range =
        absl::StrSplit(absl::StripPrefix(headers_["range"], "bytes="), '-');
    const size_t from = std::stoul(range[0]);
    const size_t to = std::min(std::stoul(range[1]), from + most_of_range_ - 1);
    response.status = 206;
    response.body = content_.substr(from, to - from + 1);
    if (!tells_ranges_) return;
    response.headers.push_back(
        {"Content-Range", absl::StrCat("bytes ", from + shift_, "-", to, "/",
                                       total_.empty() ? absl::StrCat(content_.size()) : total_)});
  }

  // Null, or its error in `status_of_ask_`.
  std::optional<ObjectHead> Ask(DirectObjects& direct, const std::string& path = "a") {
    auto head = direct.Ask(path);
    status_of_ask_ = head.status();
    return head.ok() ? *std::move(head) : std::nullopt;
  }
  // Reads by an open reader; of what the library would be asked it says so.
  absl::StatusOr<std::string> Read(ObjectReader& reader, int64_t offset, size_t bytes) {
    std::string out(bytes, '?');
    if (absl::Status status = reader.Read(offset, out); !status.ok()) return status;
    return out;
  }
  std::unique_ptr<ObjectReader> Open(DirectObjects& direct) {
    std::optional<ObjectHead> head = Ask(direct);
    EXPECT_TRUE(head.has_value()) << status_of_ask_;
    if (!head.has_value()) return nullptr;
    return direct.Read(*std::move(head), [](const StoredObject&) {
      return absl::UnimplementedError("the library is asked");
    });
  }
  void SetTag(const std::string& tag) {
    absl::MutexLock lock(&mutex_);
    answer_[0].second = tag;
  }

  absl::Mutex mutex_;
  std::atomic<int> asked_ = 0, status_ = 200, status_of_head_ = 0;  // of the last 0: `status_`
  std::string tag_of_get_;  // another than HEAD's; "": the same
  std::string method_, path_, content_ = "0123456789";
  bool heeds_ranges_ = true, tells_ranges_ = true;
  size_t shift_ = 0;  // of what the server says a range is from
  size_t most_of_range_ = 1000;
  std::string total_;  // that it says of a range; "": that of the content
  decltype(http::Request::headers) headers_;
  decltype(http::Response::headers) answer_ = {{"ETag", "\"abc-3\""},
                                               {"Last-Modified", "Fri, 27 Nov 2026 01:00:00 GMT"},
                                               {"x-amz-checksum-crc64nvme", "rosUhgp5mIg="},
                                               {"x-amz-checksum-type", "FULL_OBJECT"}};
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<DirectObjects> direct_;
  absl::Status status_of_ask_;
};

TEST_F(DirectObjectsTest, TellsTheVersionAndItsChecksum) {
  const auto head = Ask(*direct_, "a b/c");
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->object.path, "a b/c");
  EXPECT_EQ(head->object.bytes, 10);
  EXPECT_EQ(head->object.etag, "abc-3");
  EXPECT_EQ(head->object.md5, "");
  EXPECT_EQ(head->object.modified, 1795741200);
  EXPECT_EQ(TextOf(head->checksum), "crc64nvme rosUhgp5mIg=");
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(method_, "HEAD");
  EXPECT_EQ(headers_["x-amz-checksum-mode"], "ENABLED");
  EXPECT_TRUE(absl::StrContains(headers_["authorization"], ";x-amz-checksum-mode;"));
}

TEST_F(DirectObjectsTest, TellsGooglesHashesWhichStandInTwoHeaders) {
  answer_ = {{"ETag", "\"of-a-proxy\""},
             {"ETag", "\"-CJ3Q\""},  // the last one counts
             {"x-goog-generation", "1764205200000000"},
             {"x-goog-hash", "crc32c=n03x6A=="},
             {"x-goog-hash", "md5=Ojk9c3dhfxgoKVVHYwFbHQ=="},
             {"x-goog-stored-content-encoding", "identity"}};
  const auto by_key = Make(spec::StoreKind::kS3, StoreWords::kGoogle, /*has_key=*/true);
  const auto head = Ask(*by_key);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->object.etag, "-CJ3Q");
  EXPECT_EQ(head->object.md5, "3a393d7377617f182829554763015b1d");
  EXPECT_TRUE(head->md5_is_certain && head->is_sent_as_kept);
  EXPECT_EQ(TextOf(head->checksum), "crc32c n03x6A==");
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(headers_.count("x-amz-checksum-mode"), 0u) << "which Google does not know";
    EXPECT_EQ(headers_.count("authorization"), 1u);
  }
  const auto of_all = Make(spec::StoreKind::kGcs, StoreWords::kGoogle, /*has_key=*/false);
  EXPECT_EQ(Ask(*of_all)->object.etag, "generation 1764205200000000") << "as Arrow has it there";
  answer_.back().second = "gzip";
  EXPECT_FALSE(Ask(*by_key)->is_sent_as_kept);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(path_, "/bucket/a");
}

TEST_F(DirectObjectsTest, TellsAzuresMd5AndSignsByTheAccountsKey) {
  answer_ = {{"ETag", "\"0x8D\""}, {"Content-MD5", "Ojk9c3dhfxgoKVVHYwFbHQ=="}};
  const auto azure = Make(spec::StoreKind::kAzureBlob, StoreWords::kAzure, /*has_key=*/true);
  const auto head = Ask(*azure);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->object.etag, "0x8D");
  EXPECT_EQ(head->object.md5, "3a393d7377617f182829554763015b1d");
  EXPECT_TRUE(head->md5_is_certain);
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(path_, "/acme/bucket/a");
    EXPECT_TRUE(absl::StartsWith(headers_["authorization"], "SharedKey acme:"));
  }
  answer_.push_back({"x-ms-meta-hdi_isfolder", "true"});
  EXPECT_FALSE(Ask(*azure).has_value());
}

TEST_F(DirectObjectsTest, SignsNothingForPublicData) {
  const auto of_all = Make(spec::StoreKind::kS3, StoreWords::kS3, /*has_key=*/false);
  ASSERT_TRUE(Ask(*of_all).has_value());
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(headers_.count("authorization"), 0u);
}

TEST_F(DirectObjectsTest, GivesUpAStoreThatNeverAnswersWell) {
  status_ = 403;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Ask(*direct_).has_value());
  EXPECT_EQ(asked_, 3);
}

TEST_F(DirectObjectsTest, GoesOnAskingWhereOneIsMissingOrOneAnswerWasWell) {
  status_ = 404;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Ask(*direct_).has_value());
  EXPECT_EQ(asked_, 5);
  status_ = 200;
  EXPECT_TRUE(Ask(*direct_).has_value());
  status_ = 403;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Ask(*direct_).has_value());
  EXPECT_TRUE(status_of_ask_.ok());
  EXPECT_EQ(asked_, 11);
}

TEST_F(DirectObjectsTest, GivesUpAStoreThatIsOnlyEverBusyForThisWayToAsk) {
  status_ = 502;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Ask(*direct_).has_value());
    EXPECT_TRUE(absl::IsUnavailable(status_of_ask_)) << "not at once by other means";
  }
  EXPECT_FALSE(Ask(*direct_).has_value());
  EXPECT_TRUE(status_of_ask_.ok()) << "the library is asked";
  EXPECT_EQ(asked_, 3);
}

TEST_F(DirectObjectsTest, AStoreThatIsTooBusyIsNotAskedAgainByOtherMeans) {
  ASSERT_TRUE(Ask(*direct_).has_value());
  for (const int status : {503, 429, 500, 408, 507, 520}) {
    status_ = status;
    EXPECT_FALSE(Ask(*direct_).has_value());
    EXPECT_TRUE(absl::IsUnavailable(status_of_ask_)) << status << status_of_ask_;
    EXPECT_TRUE(absl::IsUnavailable(direct_->ReadWhole("a", 100).status())) << status;
  }
  status_ = 200;
  const auto reader = Open(*direct_);
  status_ = 503;
  EXPECT_TRUE(absl::IsUnavailable(Read(*reader, 2, 3).status()));
}

TEST_F(DirectObjectsTest, WhenABusyStoreAsksToBeAskedAgainIsNoted) {
  ASSERT_TRUE(Ask(*direct_).has_value());
  const auto reader = Open(*direct_);
  {
    absl::MutexLock lock(&mutex_);
    answer_.emplace_back("Retry-After", "7");
  }
  for (const int status : {503, 429}) {
    status_ = status;
    EXPECT_FALSE(Ask(*direct_).has_value());
    EXPECT_EQ(base::RetryAfterOf(status_of_ask_), absl::Seconds(7)) << status_of_ask_;
    EXPECT_EQ(base::RetryAfterOf(direct_->ReadWhole("a", 100).status()), absl::Seconds(7));
    EXPECT_EQ(base::RetryAfterOf(Read(*reader, 2, 3).status()), absl::Seconds(7));
  }
}

TEST_F(DirectObjectsTest, OneThatIsAwayIsSoOnceItHasAnswered) {
  ASSERT_TRUE(Ask(*direct_).has_value());
  const auto reader = Open(*direct_);
  server_->Stop(absl::ZeroDuration());
  EXPECT_FALSE(Ask(*direct_).has_value());
  EXPECT_TRUE(absl::IsUnavailable(status_of_ask_)) << status_of_ask_;
  EXPECT_EQ(status_of_ask_.message(), "the store cannot be reached");
  EXPECT_TRUE(absl::IsUnavailable(Read(*reader, 2, 3).status()));
}

TEST_F(DirectObjectsTest, AsksNotByAnAddressThatWouldBeAnothers) {
  EXPECT_FALSE(Ask(*direct_, "a/../b").has_value());
  EXPECT_FALSE(Ask(*direct_, "./b").has_value());
  EXPECT_EQ(direct_->ReadWhole("./b", 100).value(), nullptr);
  EXPECT_EQ(asked_, 0);
}

TEST_F(DirectObjectsTest, ReadsPartsAndTheWhole) {
  const auto reader = Open(*direct_);
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  EXPECT_EQ(Read(*reader, 9, 1).value_or("?"), "9");
  EXPECT_EQ(Read(*reader, 0, 10).value_or("?"), "0123456789");
  EXPECT_TRUE(reader->is_of_one_version());
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(headers_.count("range"), 0u) << "of the whole";
}

TEST_F(DirectObjectsTest, ReadsOneOfFewBytesByOneRequest) {
  const auto reader = direct_->ReadWhole("a", 10);
  ASSERT_TRUE(reader.ok() && *reader != nullptr) << reader.status();
  EXPECT_EQ((*reader)->content(), "0123456789");
  EXPECT_EQ((*reader)->object().etag, "abc-3");
  EXPECT_EQ(TextOf((*reader)->checksum()), "crc64nvme rosUhgp5mIg=");
  EXPECT_EQ(Read(**reader, 2, 3).value_or("?"), "234");
  EXPECT_FALSE(Read(**reader, 8, 3).ok());
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(direct_->ReadWhole("a", 9).value(), nullptr) << "it has grown";
  status_ = 404;
  EXPECT_EQ(direct_->ReadWhole("a", 10).value(), nullptr) << "the library says what that means";
}

TEST_F(DirectObjectsTest, PutsASmallObjectWithItsMd5OrLeavesItToTheLibrary) {
  EXPECT_TRUE(*direct_->PutWhole("a", "content"));
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(method_, "PUT");
    EXPECT_EQ(path_, "/bucket/a");
    EXPECT_EQ(headers_["content-md5"], "mgNkuembtIDdJeHwKEyFVQ==");
    EXPECT_TRUE(absl::StrContains(headers_["authorization"], "content-md5")) << "it is signed";
    EXPECT_EQ(headers_["content-length"], "7");
  }
  status_ = 403;
  EXPECT_FALSE(*direct_->PutWhole("a", ""));
}

TEST_F(DirectObjectsTest, AnObjectThatHasChangedIsTold) {
  const auto reader = Open(*direct_);
  SetTag("\"other\"");
  EXPECT_TRUE(absl::IsAborted(Read(*reader, 2, 3).status()));
  EXPECT_TRUE(absl::IsAborted(Read(*reader, 0, 10).status()));
  SetTag("\"abc-3\"");
  status_ = 404;
  EXPECT_TRUE(absl::IsNotFound(Read(*reader, 2, 3).status()));
  status_ = 416;
  EXPECT_TRUE(absl::IsAborted(Read(*reader, 2, 3).status())) << "it has become shorter";
}

TEST_F(DirectObjectsTest, OneOfAnotherSizeHasChangedThoughNoTagSaysSo) {
  answer_.erase(answer_.begin());
  const auto reader = Open(*direct_);
  total_ = "999";
  EXPECT_TRUE(absl::IsAborted(Read(*reader, 2, 3).status()));
}

TEST_F(DirectObjectsTest, FewerBytesThanAskedForAreAskedForAgain) {
  const auto reader = Open(*direct_);
  most_of_range_ = 2;
  std::string came;
  const absl::Status status = reader->Stream(2, 5, [&](absl::string_view piece) {
    absl::StrAppend(&came, piece);
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(came, "23");
}

TEST_F(DirectObjectsTest, WeakTagsAreComparedAndNoCondition) {
  SetTag("W/\"abc\"");
  const auto reader = Open(*direct_);
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(headers_.count("if-match"), 0u);
  }
  SetTag("W/\"other\"");
  EXPECT_TRUE(absl::IsAborted(Read(*reader, 2, 3).status()));
}

TEST_F(DirectObjectsTest, ATagThatAGatewayChangesIsNoOtherVersion) {
  const auto reader = Open(*direct_);
  SetTag("W/\"abc-3\"");
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  EXPECT_TRUE(reader->is_of_one_version());
  SetTag("\"abc-3\"");
  {
    absl::MutexLock lock(&mutex_);
    tag_of_get_ = "\"abc-3-gzip\"";
  }
  status_of_head_ = 503;
  EXPECT_TRUE(absl::IsUnavailable(Read(*reader, 2, 3).status())) << "whether it is, HEAD may tell";
  status_of_head_ = 0;
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  EXPECT_FALSE(reader->is_of_one_version()) << "it is asked once more at the end";
}

TEST_F(DirectObjectsTest, WithoutATagOneVersionIsNotSure) {
  answer_.erase(answer_.begin());
  const auto reader = Open(*direct_);
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  EXPECT_FALSE(reader->is_of_one_version());
}

TEST_F(DirectObjectsTest, AServerThatSendsNoPartsIsNotTakenForOneThatDoes) {
  const auto reader = Open(*direct_);
  heeds_ranges_ = false;
  const absl::Status status = Read(*reader, 2, 3).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "sends all of an object")) << status;
  heeds_ranges_ = true;
  shift_ = 1;
  EXPECT_TRUE(absl::IsUnavailable(Read(*reader, 2, 3).status())) << "another part";
  shift_ = 0;
  total_ = "*";
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  for (const char* odd : {"", "x", "10 "}) {
    total_ = absl::StrCat("/", odd);
    EXPECT_TRUE(absl::IsUnavailable(Read(*reader, 2, 3).status())) << total_;
  }
}

TEST_F(DirectObjectsTest, APartOfTheRightLengthNeedNotSayWhichItIsWhereAHashTells) {
  const auto reader = Open(*direct_);
  tells_ranges_ = false;
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  most_of_range_ = 2;
  EXPECT_TRUE(absl::IsUnavailable(Read(*reader, 2, 3).status())) << "another length";
}

TEST_F(DirectObjectsTest, APartThatMayBeAnotherIsRefused) {
  const auto with_hash = Open(*direct_);
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(answer_, [](const auto& header) {
      return absl::StartsWith(header.first, "x-amz-checksum");
    });
  }
  const auto reader = Open(*direct_);
  ASSERT_EQ(reader->checksum().kind, ChecksumKind::kNone);
  EXPECT_EQ(Read(*reader, 2, 3).value_or("?"), "234");
  tells_ranges_ = false;
  const absl::Status refused = Read(*reader, 2, 3).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused << ": its ETag is no hash for sure";
  EXPECT_EQ(Read(*with_hash, 2, 3).value_or("?"), "234");
  {
    absl::MutexLock lock(&mutex_);
    answer_.emplace_back("Content-Type", "multipart/byteranges; boundary=x");
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(*with_hash, 2, 3).status()));
}

TEST_F(DirectObjectsTest, WhatIsRefusedIsLeftToTheLibrary) {
  const auto reader = Open(*direct_);
  status_ = 403;
  EXPECT_EQ(Read(*reader, 2, 3).status().message(), "the library is asked");
}

TEST_F(DirectObjectsTest, FollowsNoRedirectWithItsSignature) {
  std::atomic<int> asked_elsewhere = 0;
  auto other = http::Server::Start({}, [&](const http::Request&, http::Connection&) {
    ++asked_elsewhere;
    return http::Response{.status = 200, .body = "not this"};
  });
  ASSERT_TRUE(other.ok()) << other.status();
  const auto reader = Open(*direct_);
  answer_ = {{"Location", (*other)->url() + "/bucket/a"}};
  status_ = 307;
  EXPECT_FALSE(Ask(*direct_).has_value());
  EXPECT_EQ(direct_->ReadWhole("a", 100).value(), nullptr);
  EXPECT_FALSE(Read(*reader, 2, 3).ok());
  EXPECT_EQ(asked_elsewhere, 0);
}

// The server of these tests says no length that is not its body's.
TEST_F(DirectObjectsTest, ALengthThatNoObjectHasIsNone) {
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), at, size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), at, &size), 0);
  std::thread thread([&] {
    for (int i = 0; i < 2; ++i) {
      const base::UniqueFd client(::accept(listener.get(), nullptr, nullptr));
      char asked[4096];
      if (::read(client.get(), asked, sizeof asked) <= 0) return;
      base::WriteAll(client.get(),
                     "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n"
                     "ETag: \"a\"\r\nConnection: close\r\n\r\n",
                     "answer")
          .IgnoreError();
    }
  });
  spec::DataPlace place{spec::StoreKind::kS3, "", "bucket"};
  place.endpoint = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
  DirectObjects direct(
      std::make_unique<StoreRequests>(place, Credentials{}, StoreWords::kS3, std::nullopt));
  EXPECT_FALSE(Ask(direct).has_value());
  EXPECT_EQ(direct.ReadWhole("a", 100).value(), nullptr);
  thread.join();
}

}  // namespace
}  // namespace tutti::storage
