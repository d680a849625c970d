// Tables of mode eval_mount and eval_download: read before a job queues, which then has an input
// for each path that they name. Covers: admission/inputs/table_check.cc.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "http/client/file_server_for_tests.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/datastore.h"
#include "spec/data/signed_address.h"

namespace tutti::service {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// Stands for tutti-storage: has a file MLTable, which is the file table beside it, in every folder
// that is not gone; of other objects that those which are not gone are there.
constexpr char kTableProgram[] =
    "#!/bin/sh\n"
    "request=$(cat)\n"
    "echo \"$request\" >>\"$0.asked\"\n"
    "fail() { echo \"{\\\"error\\\": {\\\"kind\\\": \\\"$1\\\", \\\"message\\\": \\\"$2\\\", "
    "\\\"source\\\": \\\"store\\\"}}\"; exit 1; }\n"
    "case $request in\n"
    "*gone*) fail not_found 'nothing is there';;\n"
    "*far*) fail network 'no route';;\n"
    "*huge*) echo '{\"done\": {\"objects\": 1, \"bytes\": 307200}}'; exit;;\n"
    "*fetch*endless*|*endless*fetch*)\n"
    "  echo '{\"progress\": {\"objects\": 0, \"of_objects\": 1, \"bytes\": 314572, "
    "\"of_bytes\": 1}}'\n"
    "  exec tail -f /dev/null;;\n"
    "*aHVudGVyMjI=*) ;;\n"
    "*) fail credentials 'the key is wrong';;\n"
    "esac\n"
    "folder=$(echo \"$request\" | sed -n 's/.*\"folder\":\"\\([^\"]*\\)\".*/\\1/p')\n"
    "[ -z \"$folder\" ] || cp \"$0.table\" \"$folder/MLTable\"\n"
    "echo '{\"done\": {\"objects\": 1, \"bytes\": 1, \"digest\": \"\"}}'\n";

class TablesTest : public ::testing::Test {
 protected:
  TablesTest() {
    const std::filesystem::path program = folder_.path() / "storage";
    if (!base::WriteFileAtomic(program, kTableProgram).ok()) std::abort();
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    spec::Datastores stores;
    for (const char* name : {"blobs", "keyless"}) {
      stores[name] = {.name = name,
                      .place = {.kind = spec::StoreKind::kAzureBlob,
                                .account = "acme",
                                .container = name,
                                .credential = spec::CredentialKind::kAccountKey,
                                .secret = absl::StrCat("datastore.", name),
                                .datastore = name}};
    }
    if (!spec::WriteDatastores(folder_.path(), stores).ok()) std::abort();
    if (!base::MakeDirectories(table_ / "deep").ok()) std::abort();
    for (const char* file : {"a.csv", "b.txt", "deep/a.csv"}) Write(table_ / file, file);
    world_ = std::make_unique<World>(folder_.path(), Script(), 2, nullptr);
    EXPECT_TRUE(
        world_->service().SetSecret("datastore.blobs", "{\"account_key\": \"aHVudGVyMjI=\"}").ok());
  }
  ~TablesTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  static void Write(const std::filesystem::path& file, const std::string& text) {
    if (!base::WriteFileAtomic(file, text).ok()) std::abort();
  }
  void WriteTable(const std::string& paths) {
    Write(table_ / "MLTable", absl::StrCat("type: mltable\npaths:\n", paths));
    Write(folder_.path() / "storage.table", absl::StrCat("paths:\n", paths));
  }
  std::string Job(const std::string& path, const std::string& mode = "eval_mount") const {
    return absl::StrCat("command: ls ${{inputs.t}}\ncompute: local\ninputs:\n  t: {type: mltable, ",
                        "path: '", path, "', mode: ", mode, "}\n");
  }
  std::string InStore(const std::string& path) const {
    return Job(absl::StrCat("azureml://datastores/blobs/paths/", path));
  }
  std::string WhyRefused(const std::string& text) {
    return std::string(world_->Submit(text).status().message());
  }
  std::map<std::string, spec::Input> InputsOf(const std::string& text) {
    const auto job = world_->Submit(text);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->record.job.spec.inputs : std::map<std::string, spec::Input>();
  }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path table_ = folder_.path() / "t";
  std::unique_ptr<World> world_;
};

TEST_F(TablesTest, WhatALocalTableNamesAreInputsOfTheJob) {
  WriteTable("  - file: ./a.csv\n  - pattern: ./deep/*.csv\n");
  const auto inputs = InputsOf(Job(table_, "eval_download"));
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs.at("t").path, "");
  EXPECT_EQ(inputs.at("t").mode, "eval_download");
  const spec::Input& file = inputs.at("t.paths[0]");
  EXPECT_EQ(file.table, "t");
  EXPECT_EQ(file.path, table_ / "a.csv");
  EXPECT_EQ(file.mode, "download");
  EXPECT_EQ(file.placed, "a.csv");
  EXPECT_EQ(inputs.at("t.paths[1]").pattern, "*.csv");
  EXPECT_EQ(inputs.at("t.paths[1]").placed, "deep");
  EXPECT_EQ(InputsOf(Job(table_, "ro_mount")).size(), 1U) << "it is the folder itself";
}

TEST_F(TablesTest, WhatATableInAStoreNamesHasItsCredentials) {
  WriteTable("  - folder: ./x\n  - file: ../y/a.csv\n");
  const auto inputs = InputsOf(InStore("sets/t"));
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs.at("t.paths[0]").place->path, "sets/t/x");
  EXPECT_EQ(inputs.at("t.paths[1]").place->path, "sets/y/a.csv");
  EXPECT_EQ(inputs.at("t.paths[1]").place->secret, "datastore.blobs");
  EXPECT_EQ(inputs.at("t.paths[1]").placed, "y/a.csv");
}

TEST_F(TablesTest, WhatCannotBeHadIsRefusedByItsName) {
  WriteTable("  - file: ./none.csv\n  - folder: ./a.csv\n  - pattern: ./*.bin\n");
  EXPECT_THAT(WhyRefused(Job(table_)),
              AllOf(HasSubstr("job.yml:4: input \"t.paths[0]\": " + table_.native() +
                              "/none.csv does not exist"),
                    HasSubstr("job.yml:4: input \"t.paths[1]\": " + table_.native() +
                              "/a.csv is a file; its table is to say file:"),
                    HasSubstr("job.yml:4: input \"t\": " + table_.native() +
                              "/MLTable:5: no file of " + table_.native() + " matches *.bin")));
  WriteTable("  - file: ../../../../etc/passwd\n  - file: /etc/passwd\n");
  EXPECT_THAT(WhyRefused(InStore("sets/t")),
              AllOf(HasSubstr("job.yml:4: input \"t\": container \"blobs\" of Azure account "
                              "\"acme\", path \"sets/t/MLTable\":2: file: "
                              "\"../../../../etc/passwd\" leads out of the container"),
                    HasSubstr("job.yml:4: input \"t\": "), HasSubstr(":3: file: \"/etc/passwd\"")));
  WriteTable("  - file: azureml://datastores/blobs/paths/gone.csv\n");
  EXPECT_THAT(WhyRefused(Job(table_)),
              HasSubstr("job.yml:4: input \"t.paths[0]\": nothing is there"));
  EXPECT_EQ(
      WhyRefused(Job((folder_.path() / "none").native())),
      absl::StrCat("job.yml:4: input \"t\": ", folder_.path().native(), "/none does not exist"));
  ASSERT_TRUE(base::MakeDirectories(table_ / "deep/MLTable").ok());
  EXPECT_THAT(WhyRefused(Job((table_ / "deep").native())), HasSubstr("/deep/MLTable is no file"));
}

TEST_F(TablesTest, ATableThatCannotBeReadIsRefused) {
  WriteTable("  - file: ./a.csv\n");
  EXPECT_THAT(WhyRefused(InStore("gone")), HasSubstr("its table cannot be read: nothing is there"));
  EXPECT_THAT(WhyRefused(InStore("far")), HasSubstr("its table cannot be read: no route"));
  EXPECT_THAT(WhyRefused(InStore("huge")), HasSubstr("has 300 KiB, and may have 256"));
  EXPECT_THAT(WhyRefused(InStore("endless")), HasSubstr("has 308 KiB, and may have 256"));
  WriteTable("  - dir: ./a.csv\n");
  EXPECT_THAT(WhyRefused(Job(table_)), HasSubstr("/MLTable:3: a path is written"));
  Write(table_ / "MLTable", std::string(300 << 10, '#'));
  EXPECT_THAT(WhyRefused(Job(table_)), HasSubstr("its file MLTable has 300 KiB"));
}

// The datastore that a table names has to be one that the job could name.
TEST_F(TablesTest, ADatastoreWithoutItsSecretIsRefused) {
  WriteTable("  - file: azureml://datastores/keyless/paths/a.csv\n");
  EXPECT_THAT(WhyRefused(Job(table_)),
              HasSubstr("job.yml:4: input \"t.paths[0]\": there is no secret "
                        "\"datastore.keyless\" (of a datastore)"));
  WriteTable("  - file: azureml://datastores/unknown/paths/a.csv\n");
  EXPECT_THAT(WhyRefused(Job(table_)), HasSubstr("there is no datastore \"unknown\""));
  EXPECT_THAT(WhyRefused(Job("azureml://datastores/keyless/paths/t")),
              HasSubstr("input \"t\": there is no secret \"datastore.keyless\""));
}

TEST_F(TablesTest, StepsHaveTablesButNotThoseThatAreYetToBeWritten) {
  WriteTable("  - file: ./a.csv\n");
  const std::string head =
      "type: pipeline\nname: p\njobs:\n  a:\n    command: echo x\n    compute: local\n"
      "    outputs: {o: {type: mltable}}\n  b:\n    command: ls\n    compute: local\n    inputs:\n";
  const auto job = world_->Submit(absl::StrCat(head, "      t: {type: mltable, path: '",
                                               table_.native(), "', mode: eval_mount}\n"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->record.job.spec.steps[1].job.inputs.contains("t.paths[0]"));
  EXPECT_THAT(WhyRefused(absl::StrCat(
                  head, "      t: {path: '${{parent.jobs.a.outputs.o}}', mode: ", "eval_mount}\n")),
              HasSubstr("job.yml:12: input \"t\": mode eval_mount needs a table that is there"));
}

TEST_F(TablesTest, ASignatureInATableIsKeptAsASecret) {
  http::FileServer server;
  server.Put("/a.csv", "1", "\"1\"");
  WriteTable(absl::StrCat("  - file: ", server.url("/a.csv"), "?sv=1&sig=verysecret\n"));
  const auto inputs = InputsOf(Job(table_));
  ASSERT_TRUE(inputs.contains("t.paths[0]"));
  const std::string& path = inputs.at("t.paths[0]").path;
  EXPECT_THAT(path, AllOf(HasSubstr("/a.csv?tutti-signature="), Not(HasSubstr("verysecret"))));
  const auto secrets = world_->service().ListSecrets();
  ASSERT_TRUE(secrets.ok());
  const std::string name = spec::SecretOfAddress(path);
  EXPECT_TRUE(std::any_of(secrets->begin(), secrets->end(),
                          [&](const auto& secret) { return secret.name == name; }));
  EXPECT_THAT(WhyRefused(Job((folder_.path() / "none").native())), Not(HasSubstr("verysecret")));
}

TEST_F(TablesTest, APatternMatchesRegularFilesAloneAsOnTheNode) {
  WriteTable("  - pattern: ./*.csv\n");
  std::filesystem::create_symlink("/nowhere", table_ / "dangling.bin");
  EXPECT_TRUE(InputsOf(Job(table_)).contains("t.paths[0]"));
  WriteTable("  - pattern: ./*.bin\n");
  EXPECT_THAT(WhyRefused(Job(table_)), HasSubstr("no file of "));
}

TEST_F(TablesTest, NoCommandNamesAPathOfATable) {
  WriteTable("  - file: ./a.csv\n");
  const std::string job = absl::StrReplaceAll(Job(table_), {{"inputs.t", "inputs.t.paths[0]"}});
  EXPECT_THAT(WhyRefused(job), HasSubstr("t.paths[0]"));
}

}  // namespace
}  // namespace tutti::service
