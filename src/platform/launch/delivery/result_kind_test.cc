#include "platform/launch/delivery/result_kind.h"

#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

TEST(ResultKind, ModelsMetricsAndWhatLoggersWriteAreResults) {
  for (const char* path :
       {"model.pkl", "checkpoints/1/Model.PT", "runs/Nov23/events.out.tfevents.1795461692.host.7.0",
        "lightning_logs/version_0/metrics.csv", "lightning_logs/version_0/hparams.yaml",
        "metrics.json", "test_results.csv", "src/mlruns/0/r/metrics/loss", "predictions.npy",
        "wandb/offline-run-1/run-1.wandb"}) {
    EXPECT_TRUE(IsResultByKind(path)) << path;
  }
}

TEST(ResultKind, ByProductsAreNone) {
  for (const char* path : {"vocab.json", "data/train.csv", "notes.txt", "small", "nohup.out",
                           "metrics.py", "cache.bin", "mlruns", "evaluate.sh", ""}) {
    EXPECT_FALSE(IsResultByKind(path)) << path;
  }
}

}  // namespace
}  // namespace tutti::launch
