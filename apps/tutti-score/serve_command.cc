#include "serve_command.h"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "http/identity.h"
#include "runtime/device/cpu/kept_memory.h"
#include "runtime/scoring/serve/scoring_server.h"

namespace tutti {
namespace {

constexpr int kCouldNotStart = 2;
constexpr int kArenas = 2;                          // of malloc
constexpr absl::Duration kLook = absl::Seconds(2);  // between two looks at models' folders

struct ServeOptions {
  std::vector<std::string> models;
  std::string precision = "auto";
  int port = 8000;
  std::string bind = "127.0.0.1";
  int workers = 1, threads = 0, decoders = 0;
  double max_latency_ms = 0, deadline_ms = 0;
  int max_body_mib = 64;
  std::string access_log, tls, tokens, allow_origin;
  int drain_seconds = 30;
};

void Describe(CLI::App& app, ServeOptions& options) {
  app.add_option("MODEL", options.models,
                 "Folder of a model, as tutti-train wrote it or with TorchScript and model.yml; "
                 "NAME=FOLDER or NAME:VERSION=FOLDER names it")
      ->required()
      ->type_name("");
  app.add_option("--port", options.port, "Port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535).description(""))
      ->capture_default_str()
      ->type_name("PORT");
  app.add_option("--bind", options.bind, "Numeric address to listen on")
      ->capture_default_str()
      ->type_name("ADDRESS");
  app.add_option("--precision", options.precision,
                 "fp32, bf16 or auto: what is fastest on this processor")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}).description(""))
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--workers", options.workers, "Compute so many batches at a time")
      ->check(CLI::Range(1, 256).description(""))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--threads", options.threads,
                 "Threads for each batch (default: the processors, divided by the workers)")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  app.add_option("--decoders", options.decoders,
                 "Threads that decode images (default: as many as processors)")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  app.add_option("--max-latency", options.max_latency_ms,
                 "No batch takes longer than this, in milliseconds (default: than two lone "
                 "requests)")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("MS");
  app.add_option("--deadline", options.deadline_ms,
                 "Refuse at once (429) what could not be answered in so many milliseconds "
                 "(default: four times the largest batch, at least 1000)")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("MS");
  app.add_option("--max-body", options.max_body_mib, "Largest body of a request, in MiB")
      ->check(CLI::Range(1, 4096).description(""))
      ->capture_default_str()
      ->type_name("MIB");
  app.add_option("--access-log", options.access_log,
                 "Append a line of JSON for each request; \"-\": to standard output")
      ->type_name("FILE");
  app.add_option("--tls", options.tls, "Speak HTTPS, by a PEM file with a key and its certificate")
      ->type_name("FILE");
  app.add_option("--tokens", options.tokens,
                 "Let in who shows a token of this file, one on each line (Authorization: Bearer)")
      ->type_name("FILE");
  app.add_option("--allow-origin", options.allow_origin,
                 "Let pages of this origin ask (CORS); \"*\": of any")
      ->type_name("ORIGIN");
  app.add_option("--drain", options.drain_seconds,
                 "At SIGTERM wait so long for answers that are under way")
      ->check(CLI::Range(0, 3600).description(""))
      ->capture_default_str()
      ->type_name("SECONDS");
  app.footer(R"(Examples:
  tutti-score serve outputs/model
  tutti-score serve cats=outputs/model boxes:3=detector/model --port 8080
  curl --data-binary @cat.jpg -H 'Content-Type: image/jpeg' \
       http://127.0.0.1:8000/v2/models/cats/infer

It speaks the Open Inference Protocol (KServe v2) and Azure ML's /score. A model
whose folder changes is loaded anew, and takes the old one's place.

Exit code: 0 after SIGTERM or SIGINT; 2 wrong usage, or it could not start.)");
}

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "tutti-score: %s\n", std::string(status.message()).c_str());
  return kCouldNotStart;
}

absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& file) {
  std::vector<std::string> tokens;
  if (file.empty()) return tokens;
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (!token.empty() && token[0] != '#') tokens.emplace_back(token);
  }
  if (tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file, " has no token: one on each line"));
  }
  return tokens;
}

absl::StatusOr<std::shared_ptr<const http::Identity>> ReadIdentity(const std::string& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file));
  auto identity = http::Identity::FromPem(text);
  if (!identity.ok()) return base::Annotate(identity.status(), file);
  return identity;
}

// Says what of a model a user wants to know before the first request.
void TellOf(const scoring::ServedModel& served) {
  const scoring::ModelFacts& facts = served.model->facts();
  std::printf("model %s version %s: %s of %zu classes, %lldx%lld, %s; %s\n", served.name.c_str(),
              served.version.c_str(), facts.task.c_str(), facts.classes.size(),
              static_cast<long long>(facts.height), static_cast<long long>(facts.width),
              facts.precision.c_str(), served.plan.Describe().c_str());
  if (!facts.precision_why.empty()) std::fprintf(stderr, "%s\n", facts.precision_why.c_str());
  std::fflush(stdout);
}

absl::Status Serve(const ServeOptions& options, const sigset_t& ending) {
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads =
      options.threads > 0 ? options.threads : std::max(1, processors / options.workers);
  const auto begin_worker = [threads] { at::set_num_threads(threads); };
  std::vector<scoring::ModelSource> sources;
  for (const std::string& text : options.models) {
    TUTTI_ASSIGN_OR_RETURN(sources.emplace_back(), scoring::ParseModelSource(text));
  }
  scoring::ScoringServerOptions of_server{.address = options.bind,
                                          .port = options.port,
                                          .allow_origin = options.allow_origin,
                                          .max_body = static_cast<uint64_t>(options.max_body_mib)
                                                      << 20,
                                          .deadline = absl::Milliseconds(options.deadline_ms)};
  TUTTI_ASSIGN_OR_RETURN(of_server.tokens, ReadTokens(options.tokens));
  if (!options.tls.empty()) {
    TUTTI_ASSIGN_OR_RETURN(of_server.identity, ReadIdentity(options.tls));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<scoring::AccessLog> log,
                         scoring::AccessLog::Open(options.access_log));
  // Threads come and go with the requests: what each would keep for itself would add up.
  ::mallopt(M_ARENA_MAX, kArenas);
  device::KeepLargeBlocks();
  begin_worker();
  scoring::Batcher batcher({.workers = options.workers,
                            .decoders = options.decoders > 0 ? options.decoders : processors,
                            .begin_worker = begin_worker});
  scoring::ModelStore models(batcher, {.precision = options.precision,
                                       .max_latency = absl::Milliseconds(options.max_latency_ms),
                                       .begin_worker = begin_worker,
                                       .on_loaded = TellOf});
  for (scoring::ModelSource& source : sources) {
    TUTTI_RETURN_IF_ERROR(models.Add(std::move(source)));
  }
  TUTTI_ASSIGN_OR_RETURN(
      const std::unique_ptr<scoring::ScoringServer> server,
      scoring::ScoringServer::Start(std::move(of_server), models, batcher, *log));
  models.Watch(kLook);
  std::printf("listening on %s\n", server->url().c_str());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&ending, &signal);
  server->Drain(absl::Seconds(options.drain_seconds));
  return absl::OkStatus();
}

}  // namespace

int ServeCommand(int argc, char** argv) {
  CLI::App app("Serves trained models by HTTP.", "tutti-score serve");
  ServeOptions options;
  Describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kCouldNotStart;
  }
  ::signal(SIGPIPE, SIG_IGN);  // of standard output, when its reader has gone
  // Every thread that is started from here on leaves these to sigwait.
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const absl::Status status = Serve(options, ending);
  return status.ok() ? 0 : Complain(status);
}

}  // namespace tutti
