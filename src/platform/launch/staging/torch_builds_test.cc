#include "platform/launch/staging/torch_builds.h"

#include <gmock/gmock.h>

namespace tutti::launch {
namespace {

constexpr bool kGpus = true, kNoGpus = false;

spec::Environment Asking(const std::vector<std::string>& packages, const std::string& torch = "") {
  spec::Environment environment{.name = "e", .is_host = false};
  for (const std::string& package : packages) environment.packages.push_back({package, "c.yml:1"});
  environment.torch = torch;
  return environment;
}

std::string BuildsOf(const spec::Environment& environment, bool node_has_gpus,
                     const std::map<std::string, std::string>& variables = {}) {
  return WithTorchBuilds(environment, variables, node_has_gpus).torch;
}

TEST(TorchBuilds, AreThoseForCpusWhereTheNodeHasNoGpuOrTheFileSaysSo) {
  EXPECT_EQ(BuildsOf(Asking({"numpy", "torch==2.1.0"}), kNoGpus), "cpu");
  EXPECT_EQ(BuildsOf(Asking({"torch"}), kGpus), "");
  EXPECT_EQ(BuildsOf(Asking({"torch"}, "cpu"), kGpus), "cpu");
  EXPECT_EQ(BuildsOf(Asking({"torch"}, "gpu"), kNoGpus), "");
  for (const char* package : {"torchvision>=0.1", "pytorch_lightning", "transformers[torch]",
                              "Sentence_Transformers", "timm==1.0"}) {
    EXPECT_EQ(BuildsOf(Asking({package}), kNoGpus), "cpu") << package;
  }
  EXPECT_EQ(BuildsOf(Asking({"numpy", "tensorflow"}), kNoGpus), "");
}

TEST(TorchBuilds, AreLeftAloneWhereFilesOrVariablesNameThem) {
  EXPECT_EQ(BuildsOf(Asking({"torch==2.1.0+cu118"}), kNoGpus), "");
  EXPECT_EQ(BuildsOf(Asking({"torch==2.1.0+cpu"}, "cpu"), kNoGpus), "");
  EXPECT_EQ(BuildsOf(Asking({"torch @ https://e.org/torch-2-cp311.whl"}), kNoGpus), "");
  spec::Environment with_index = Asking({"torch"});
  with_index.options = {"--extra-index-url=https://download.pytorch.org/whl/cu121"};
  EXPECT_EQ(BuildsOf(with_index, kNoGpus), "");
  with_index.options = {"--extra-index-url=https://e.org/simple"};
  EXPECT_EQ(BuildsOf(with_index, kNoGpus), "cpu");
  with_index.options = {"--no-index"};
  EXPECT_EQ(BuildsOf(with_index, kNoGpus), "");
  EXPECT_EQ(BuildsOf(Asking({"torch"}), kNoGpus, {{"UV_INDEX", "https://m/pytorch/simple"}}), "");
}

TEST(TorchBuilds, AreWhatUvsOwnVariableSays) {
  EXPECT_EQ(BuildsOf(Asking({"torch"}), kNoGpus, {{"UV_TORCH_BACKEND", "cu128"}}), "cu128");
  EXPECT_EQ(BuildsOf(Asking({"torch"}), kGpus, {{"UV_TORCH_BACKEND", "cpu"}}), "cpu");
  EXPECT_EQ(BuildsOf(Asking({"torch"}), kNoGpus, {{"UV_TORCH_BACKEND", "auto"}}), "cpu");
  EXPECT_EQ(BuildsOf(Asking({"torch"}), kGpus, {{"UV_TORCH_BACKEND", "auto"}}), "auto");
  EXPECT_EQ(BuildsOf(Asking({"numpy"}), kGpus, {{"UV_TORCH_BACKEND", "cpu"}}), "");
}

TEST(TorchBuilds, KnowsWhetherTheFilesPinPyTorch) {
  EXPECT_TRUE(PinsTorch(Asking({"numpy", "torch==1.13.1"})));
  EXPECT_FALSE(PinsTorch(Asking({"torch>=1.13", "torchvision==0.14.1"})));
}

}  // namespace
}  // namespace tutti::launch
