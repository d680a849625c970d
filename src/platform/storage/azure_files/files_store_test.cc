// Tests answers of a share that no stand-in gives; tests/storage/ runs the store against one.
#include "platform/storage/azure_files/files_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/threads/retry_after.h"
#include "http/server/server.h"

namespace tutti::storage {
namespace {

constexpr char kShareKey[] = "YSBrZXkgb2YgdHV0dGk=";

// FilesStoreTest has a share with one file, which has another version once it has been asked about.
class FilesStoreTest : public ::testing::Test {
 protected:
  FilesStoreTest() {
    auto server = http::Server::Start({}, [this](const http::Request& request, http::Connection&) {
      http::Response response{.status = status_, .body = body_};
      response.headers = {{"ETag", request.method == "HEAD" ? "\"1\"" : later_etag_},
                          {"Last-Modified", "Fri, 27 Nov 2026 01:00:00 GMT"}};
      if (status_ == 503) response.headers.emplace_back("Retry-After", "5");
      return response;
    });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    spec::DataPlace place{spec::StoreKind::kAzureFile, "acme", "share"};
    place.endpoint = absl::StrCat(server_->url(), "/acme");
    Credentials key{spec::CredentialKind::kAccountKey, kShareKey};
    store_ = OpenFilesStore(place, key).value_or(nullptr);
  }

  std::string body_ = "hello", later_etag_ = "\"1\"";
  std::atomic<int> status_ = 200;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(FilesStoreTest, ReadsTheVersionThatWasOpened) {
  const auto reader = store_->Open("a/b");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->object().path, "a/b");
  EXPECT_EQ((*reader)->object().bytes, 5);
  EXPECT_EQ((*reader)->object().etag, "1");
  EXPECT_EQ((*reader)->object().modified, 1795741200);
  std::string bytes(5, ' ');
  ASSERT_TRUE((*reader)->Read(0, bytes).ok());
  EXPECT_EQ(bytes, "hello");
}

TEST_F(FilesStoreTest, TakesNoByteOfALaterVersion) {
  const auto reader = store_->Open("a/b");
  ASSERT_TRUE(reader.ok()) << reader.status();
  later_etag_ = "\"2\"";
  std::string bytes(5, ' ');
  const absl::Status status = (*reader)->Read(0, bytes);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(bytes, "     ");
}

TEST_F(FilesStoreTest, AnAnswerOfAnotherLengthIsAnError) {
  const auto reader = store_->Open("a/b");
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string more(6, ' '), less(4, ' ');
  EXPECT_TRUE(absl::IsDataLoss((*reader)->Read(0, more)));
  EXPECT_TRUE(absl::IsUnavailable((*reader)->Read(0, less)));
}

TEST_F(FilesStoreTest, SaysThatAPageOfAnotherServerIsNoList) {
  body_ = "<html>Sign in</html>";
  EXPECT_TRUE(absl::IsUnavailable(store_->List("", true).status()));
}

TEST_F(FilesStoreTest, NotesWhenAServiceThatIsTooBusyAsksToBeAskedAgain) {
  status_ = 503;
  const absl::Status busy = store_->Open("a/b").status();
  EXPECT_TRUE(absl::IsUnavailable(busy)) << busy;
  EXPECT_EQ(base::RetryAfterOf(busy), absl::Seconds(5));
}

TEST(OpenFilesStore, NeedsAKeyOrASignature) {
  for (const auto kind : {spec::CredentialKind::kNone, spec::CredentialKind::kServicePrincipal}) {
    const auto store = OpenFilesStore({spec::StoreKind::kAzureFile, "acme", "share"}, {kind});
    EXPECT_TRUE(absl::IsInvalidArgument(store.status())) << store.status();
  }
}

}  // namespace
}  // namespace tutti::storage
