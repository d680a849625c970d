// ScoringServer answers requests for models by HTTP (docs/serving/README.md): the Open Inference
// Protocol, images as they are, and Azure ML's /score. A request that waits for its model has no
// thread. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/identity.h"
#include "http/server/server.h"
#include "runtime/scoring/serve/access_log.h"
#include "runtime/scoring/serve/batcher.h"
#include "runtime/scoring/serve/inference_protocol.h"
#include "runtime/scoring/serve/model_store.h"

namespace tutti::scoring {

struct ScoringServerOptions {
  std::string address = "127.0.0.1";               // numeric
  int port = 0;                                    // 0: any free one
  std::shared_ptr<const http::Identity> identity;  // null: plain HTTP
  std::vector<std::string> tokens;  // each lets its bearer in; none: everybody is let in
  std::string allow_origin;         // of pages that may ask: "*", "https://example.org"; "": none
  uint64_t max_body = uint64_t{64} << 20;
  // How long a request may wait, if it does not say less itself; zero: four times its model's
  // largest batch, at least a second.
  absl::Duration deadline;
};

class ScoringServer {
 public:
  // `models`, `batcher` and `log` must outlive it.
  static absl::StatusOr<std::unique_ptr<ScoringServer>> Start(ScoringServerOptions options,
                                                              ModelStore& models, Batcher& batcher,
                                                              AccessLog& log);
  ~ScoringServer();
  std::string url() const { return server_->url(); }

  // Refuses what comes from now on, is ready no more, and waits up to `grace` for the answers to
  // what came before.
  void Drain(absl::Duration grace);

 private:
  friend class PendingAnswer;
  ScoringServer(ScoringServerOptions options, ModelStore& models, Batcher& batcher, AccessLog& log)
      : options_(std::move(options)), models_(models), batcher_(batcher), log_(log) {}

  http::Admission Admit(const http::Request& request);
  http::Response Handle(const http::Request& request, http::Connection& connection);
  http::Response Route(const http::Request& request, http::Connection& connection);
  http::Response OfModel(const http::Request& request, http::Connection& connection,
                         const std::vector<std::string>& path);
  // What an answer is written as: tensors of the protocol, one image's answer, a list of them.
  enum class Form { kInfer, kImage, kList };
  using FindModel = std::function<absl::StatusOr<ServedModelPtr>()>;
  http::Response Infer(const http::Request& request, http::Connection& connection,
                       const FindModel& find, Form form);
  http::Response Repository(const std::vector<std::string>& path);
  http::Response Metrics(const http::Request& request) const;
  // Has the images answered.
  http::Response Submit(const http::Request& request, http::Connection& connection,
                        const ServedModelPtr& model, Form form, InferRequest infer);
  // Adds what every response has, and logs it.
  http::Response Finished(http::Response response, AccessLine line);

  const ScoringServerOptions options_;
  ModelStore& models_;
  Batcher& batcher_;
  AccessLog& log_;
  std::atomic<bool> draining_ = false;
  std::atomic<int64_t> pending_ = 0;        // answers that come later
  std::atomic<int64_t> waiting_bytes_ = 0;  // of their images
  mutable absl::Mutex mutex_;
  std::map<int, int64_t> answers_ ABSL_GUARDED_BY(mutex_);  // by status
  std::unique_ptr<http::Server> server_;
};

}  // namespace tutti::scoring
