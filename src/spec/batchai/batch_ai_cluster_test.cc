#include "spec/batchai/batch_ai_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/batchai/batch_ai_job.h"
#include "spec/data/file_server_file.h"
#include "spec/site/compute_file.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kCluster[] = R"({"$schema": "x", "properties": {
  "vmSize": "Standard_NC6", "vmPriority": "lowpriority",
  "scaleSettings": {"autoScale": {"minimumNodeCount": 0, "maximumNodeCount": 4}},
  "userAccountSettings": {"adminUserName": "me", "adminUserPassword": "hunter2"},
  "nodeSetup": {
    "setupTask": {"commandLine": "apt update", "stdOutErrPathPrefix": "/x"},
    "mountVolumes": {"azureFileShares": [{"azureFileUrl": "https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/s",
       "relativeMountPath": "external", "credentials": {"accountKey": "hunter3"}}]}}}})";

TEST(BatchAiCluster, BecomesAComputeAndTheVolumesOfItsJobs) {
  const auto cluster = ConvertBatchAiCluster(kCluster, "cluster.json", "nc6", "acme");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const auto compute = ReadComputeFile(cluster->compute, "compute.yml");
  ASSERT_TRUE(compute.ok()) << compute.status();
  EXPECT_EQ(compute->compute.name, "nc6");
  EXPECT_EQ(compute->compute.max_instances, 4);
  EXPECT_THAT(cluster->volumes, Not(HasSubstr("hunter")));
  EXPECT_THAT(cluster->warnings, AllOf(Contains(HasSubstr("\"vmSize\" has no effect")),
                                       Contains(HasSubstr("\"setupTask\" has no effect"))));
  ASSERT_EQ(cluster->stores.size(), 1u);
  EXPECT_THAT(cluster->stores[0].text, HasSubstr("hunter3"));
  // They are read as a cluster's file.
  BatchAiOptions options;
  options.cluster_text = cluster->volumes;
  options.cluster_file = "nc6.json";
  const auto job = ConvertBatchAiJob(
      R"({"properties": {"nodeCount": 1, "customToolkitSettings":
          {"commandLine": "ls $AZ_BATCHAI_MOUNT_ROOT/external"}}})",
      "job.json", options);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->text, HasSubstr("https://acme.file.core.windows.net/s"));
}

TEST(BatchAiCluster, NotesVolumesAsAddressesAlone) {
  const auto cluster = ConvertBatchAiCluster(
      R"({"properties": {"nodeSetup": {"mountVolumes": {"unmanagedFileSystems": [
          {"mountCommand": "mount -t cifs //acme.file.core.windows.net/s -o username=acme,password=hunter2", "relativeMountPath": "a"},
          {"mountCommand": "mount -t nfs -o hunter3 10.0.0.4:/export", "relativeMountPath": "b"}],
        "azureBlobFileSystems": [{"accountName": "acme", "containerName": "c", "relativeMountPath": "c",
          "mountOptions": "--hunter4", "credentials": {"accountKey": "hunter5"}}]}}}})",
      "c.json", "nc6", "");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(cluster->volumes, Not(HasSubstr("hunter")));
  EXPECT_EQ(cluster->stores.size(), 2u);
  BatchAiOptions options;
  options.cluster_text = cluster->volumes;
  const auto job = ConvertBatchAiJob(
      R"({"properties": {"nodeCount": 1, "customToolkitSettings": {"commandLine":
          "ls $AZ_BATCHAI_MOUNT_ROOT/a $AZ_BATCHAI_MOUNT_ROOT/b $AZ_BATCHAI_MOUNT_ROOT/c"}}})",
      "job.json", options);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->text, AllOf(HasSubstr("https://acme.file.core.windows.net/s/"),
                               HasSubstr("nfs://10.0.0.4/export/"),
                               HasSubstr("https://acme.blob.core.windows.net/c/")));
}

TEST(BatchAiCluster, NeedsNoVolumes) {
  const auto cluster = ConvertBatchAiCluster(
      R"({"properties": {"scaleSettings": {"manual": {"targetNodeCount": 0}}}})", "c.json", "nc6",
      "");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ReadComputeFile(cluster->compute, "c.yml")->compute.max_instances, 0);
  BatchAiOptions options;
  options.cluster_text = cluster->volumes;
  EXPECT_TRUE(
      ConvertBatchAiJob(
          R"({"properties": {"nodeCount": 1, "customToolkitSettings": {"commandLine": "ls"}}})",
          "job.json", options)
          .ok());
}

TEST(BatchAiCluster, RefusesWhatItDoesNotKnow) {
  const auto cluster =
      ConvertBatchAiCluster(R"({"properties": {"vmSise": "x"}})", "c.json", "a", "");
  EXPECT_THAT(cluster.status().message(), HasSubstr("c.json:1: unknown key \"vmSise\""));
}

TEST(BatchAiFileServer, BecomesAFileServerOfAFolder) {
  const auto server = ConvertBatchAiFileServer(
      R"({"properties": {"vmSize": "x", "sshConfiguration": {}, "dataDisks": {"diskCount": 2}}})",
      "nfs.json", "sets", {"/srv/sets", "10.0.0.5", {"10.0.0.0/24"}, 2050});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto read = ReadFileServerFile(server->text, "f.yml", "/");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "sets");
  EXPECT_EQ(read->folder, "/srv/sets");
  EXPECT_EQ(read->port, 2050);
  EXPECT_THAT(read->clients, ::testing::ElementsAre("10.0.0.0/24"));
  EXPECT_EQ(server->warnings.size(), 3u);
}

}  // namespace
}  // namespace tutti::spec
