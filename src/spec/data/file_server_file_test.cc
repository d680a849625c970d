// Covers: file_server.cc.
#include "spec/data/file_server_file.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "spec/data/home_list.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kServerHead[] = "name: images\nfolder: /data/images\n";

FileServer ServerFrom(absl::string_view text) {
  auto server = ReadFileServerFile(text, "server.yml", "/base");
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : FileServer();
}

std::string ServerError(absl::string_view text) {
  const auto server = ReadFileServerFile(text, "server.yml", "/base");
  EXPECT_FALSE(server.ok()) << text;
  return std::string(server.status().message());
}

TEST(FileServerFile, ServesThisMachineAloneAndReadOnlyUnlessToldOtherwise) {
  const FileServer server = ServerFrom(kServerHead);
  EXPECT_EQ(server.name, "images");
  EXPECT_EQ(server.folder, "/data/images");
  EXPECT_EQ(server.address, "127.0.0.1");
  EXPECT_EQ(server.port, kNfsPort);
  EXPECT_FALSE(server.is_writable);
  EXPECT_THAT(server.clients, ElementsAre("127.0.0.0/8"));
  EXPECT_EQ(EndpointOf(server), "nfs://127.0.0.1");
}

TEST(FileServerFile, OfTheNetwork) {
  const FileServer server = ServerFrom(
      "name: images\nfolder: images\naddress: 10.0.0.5\nport: 12049\naccess: read_write\n"
      "clients: [10.0.0.0/24, 10.1.0.7]\nfill: azureml://datastores/photos/paths/train\n"
      "description: of cats\ntags: {a: b}\n");
  EXPECT_EQ(server.folder, "/base/images");
  EXPECT_TRUE(server.is_writable);
  EXPECT_THAT(server.clients, ElementsAre("10.0.0.0/24", "10.1.0.7"));
  EXPECT_EQ(server.fill, "azureml://datastores/photos/paths/train");
  const DataPlace place = PlaceOf(server);
  EXPECT_EQ(StoreOf(place), "nfs images at nfs://10.0.0.5:12049");
  EXPECT_EQ(place.datastore, "images");
}

// A list that an older version has written is read on.
TEST(FileServerFile, OfWhichAnAddressLeadsToTheNodeThatAsks) {
  FileServer server = ServerFrom(kServerHead);
  EXPECT_TRUE(NamesEachNode(server));
  for (const auto& [address, names_each] :
       std::map<std::string, bool>{{"127.9.0.1", true}, {"0.0.0.0", true}, {"10.0.0.5", false}}) {
    server.address = address;
    EXPECT_EQ(NamesEachNode(server), names_each) << address;
    const base::TemporaryDirectory home;
    EXPECT_TRUE(WriteFileServers(home.path(), {{"images", server}}).ok());
    EXPECT_TRUE(ReadFileServers(home.path()).ok());
  }
}

TEST(FileServerFile, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(ServerError("folder: /d\n"), HasSubstr("server.yml:1: the key \"name\" is missing"));
  EXPECT_THAT(ServerError("name: a.b\nfolder: /d\n"),
              HasSubstr("server.yml:1: a file server's name"));
  EXPECT_THAT(ServerError("name: a\n"), HasSubstr("the key \"folder\" is missing"));
  EXPECT_THAT(ServerError("name: a\nfolder: /\n"), HasSubstr("server.yml:2: folder is the whole"));
  EXPECT_THAT(ServerError("name: a\nfolder: '/d\"; } x'\n"),
              HasSubstr("server.yml:2: folder has a"));
  const auto wrong = [](absl::string_view more) {
    return ServerError(absl::StrCat(kServerHead, more));
  };
  EXPECT_THAT(wrong("address: nfs.example.org\n"), HasSubstr("server.yml:3: address must be"));
  EXPECT_THAT(wrong("address: 0.0.0.0\nclients: [10.0.0.7]\n"),
              HasSubstr("server.yml:3: address 0.0.0.0 leads each node to itself: name the"));
  EXPECT_THAT(wrong("address: 10.0.0.5\n"), HasSubstr("the key \"clients\" is missing"));
  EXPECT_THAT(wrong("clients: ['*']\n"), HasSubstr("server.yml:3: clients: \"*\" is no IPv4"));
  EXPECT_THAT(wrong("clients: [10.0.0.0/33]\n"), HasSubstr("is no IPv4"));
  EXPECT_THAT(wrong("clients: [10.0.0.0/+8]\n"), HasSubstr("is no IPv4"));
  EXPECT_THAT(wrong("access: all\n"), HasSubstr("server.yml:3: "));
  EXPECT_THAT(wrong("port: 70000\n"), HasSubstr("server.yml:3: "));
  EXPECT_THAT(wrong("fill: /other\n"), HasSubstr("server.yml:3: fill must be the address"));
  EXPECT_THAT(wrong("export: x\n"), HasSubstr("unknown key"));
}

// The list is shown, and lies in backups.
TEST(FileServerFile, TakesNoSignature) {
  const std::string error = ServerError(absl::StrCat(
      kServerHead, "fill: 'https://acme.blob.core.windows.net/c/x?sv=2021-08-06&sig=c2VjcmV0'\n"));
  EXPECT_THAT(error, AllOf(HasSubstr("server.yml:3: fill has a signature"), HasSubstr("sas_token"),
                           Not(HasSubstr("c2VjcmV0"))));
  EXPECT_EQ(ServerFrom(absl::StrCat(kServerHead, "fill: s3://b/runs/sig=3\n")).fill,
            "s3://b/runs/sig=3");
}

TEST(FileServers, AreKeptInTheServicesFolder) {
  const base::TemporaryDirectory home;
  const FileServers none = ReadFileServers(home.path()).value();
  EXPECT_TRUE(none.empty());
  FileServers servers;
  servers["images"] = ServerFrom(absl::StrCat(kServerHead, "access: read_write\nport: 7\n"));
  ASSERT_TRUE(WriteFileServers(home.path(), servers).ok());
  const auto read = ReadFileServers(home.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(JsonOf(*read), JsonOf(servers));
}

// It would go into another program's configuration.
TEST(FileServers, RefusesAListThatWasEditedToSomethingElse) {
  for (const auto& [key, value] : {std::pair("name", "../x"),
                                   {"address", "0.0.0.0; }"},
                                   {"folder", "images"},
                                   {"folder", "/"},
                                   {"folder", "/d\"; } EXPORT { Path = \"/etc"},
                                   {"folder", "/d\n"},
                                   {"clients", "*"}}) {
    nlohmann::json server = JsonOf(ServerFrom(kServerHead));
    server[key] = std::string(key) == "clients" ? nlohmann::json{value} : nlohmann::json(value);
    const nlohmann::json list = {{"file_servers", {server}}};
    const auto read = FileServersFromJson(list.dump(), "file-servers.json");
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(key));
  }
}

}  // namespace
}  // namespace tutti::spec
