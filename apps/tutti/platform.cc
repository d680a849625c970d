#include "platform.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/disk_reserve.h"
#include "base/status.h"
#include "platform/api/api.h"
#include "platform/api/tls_files.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/state_folder.h"
#include "platform/store/store.h"
#include "platform/tracking/artifact_store.h"
#include "platform/tracking/store/tracking_store.h"
#include "platform/tracking/tracking_server.h"
#include "spdlog/spdlog.h"

namespace tutti {
namespace {

// How long the end of the service waits for a file server that is away. Then the process ends
// without it, as it could be killed at any moment.
constexpr absl::Duration kPatienceAtTheEnd = absl::Seconds(10);

// Ends the process unless it goes in time.
class EndInTime {
 public:
  ~EndInTime() {
    {
      absl::MutexLock lock(&mutex_);
      over_ = true;
      changed_.SignalAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  void Begin() {
    thread_ = std::thread([this] {
      const base::Deadline deadline = base::Deadline::After(kPatienceAtTheEnd);
      absl::MutexLock lock(&mutex_);
      while (!over_ && !deadline.Expired()) {
        changed_.WaitWithTimeout(&mutex_, deadline.Remaining());
      }
      if (over_) return;
      spdlog::warn("a folder does not answer: the service ends without it");
      spdlog::shutdown();
      ::_exit(0);
    });
  }

 private:
  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Members are made from top to bottom, each on what is above it, and go in the other order.
class RunningPlatform final : public Platform {
 public:
  absl::Status Open(const PlatformOptions& options) {
    TUTTI_ASSIGN_OR_RETURN(service::StateFolder folder,
                           service::StateFolder::Open(options.directory));
    folder_ = std::make_unique<service::StateFolder>(std::move(folder));
    reserve_ = std::make_unique<base::DiskReserve>(options.directory / "reserve");
    store::StoreOptions with;
    with.on_full = [reserve = reserve_.get()] { return reserve->GiveUp(); };
    TUTTI_ASSIGN_OR_RETURN(store_, store::Store::Open(folder_->database(), std::move(with)));
    if (options.mlflow) TUTTI_RETURN_IF_ERROR(OpenTracking(options.directory));
    TUTTI_RETURN_IF_ERROR(OpenService(options));
    TUTTI_RETURN_IF_ERROR(Listen(options));
    service_->Run();
    if (options.start_beside) beside_ = options.start_beside();
    return absl::OkStatus();
  }

  ~RunningPlatform() override {
    if (server_ == nullptr) return;
    if (const absl::Status status = folder_->Withdraw(); !status.ok()) {
      spdlog::warn("{}", status.ToString());
    }
    end_in_time_.Begin();
    service_->Stop();  // first, so that nobody waits in it
  }

  const std::string& url() const override { return server_->url(); }
  absl::StatusOr<std::string> portal_url() const override { return server_->portal_url(); }

 private:
  // Like jobs, what is logged leaves the disk the room that jobs which are there still need.
  absl::Status OpenTracking(const std::filesystem::path& home) {
    const auto check_room = [home](uint64_t bytes) -> absl::Status {
      const absl::Status status = service::CheckRoom(home, bytes);
      if (!absl::IsResourceExhausted(status)) return status;
      return absl::ResourceExhaustedError(
          absl::StrCat(status.message(),
                       "; prune removes nothing of what MLflow's clients logged, "
                       "where only artifacts can be deleted"));
    };
    tracking::TrackingStoreOptions with;
    with.check_room = [check_room] { return check_room(0); };
    TUTTI_ASSIGN_OR_RETURN(tracking_store_, tracking::TrackingStore::Open(
                                                home / "tracking.db", &clock_, std::move(with)));
    TUTTI_ASSIGN_OR_RETURN(artifacts_,
                           tracking::ArtifactStore::Open(home / "tracking", check_room));
    tracking_ = std::make_unique<tracking::TrackingServer>(tracking_store_.get(), artifacts_.get());
    return absl::OkStatus();
  }

  absl::Status OpenService(const PlatformOptions& options) {
    TUTTI_ASSIGN_OR_RETURN(engine_, options.make_engine());
    service::ServiceOptions service = options.service;
    service.directory = options.directory;
    service.reserve = reserve_.get();
    service.launcher_file = folder_->launcher_file();
    service.launcher_key = folder_->launcher_key();
    service.tracking = tracking_store_.get();
    service::Engines engines(engine_.get());
    if (options.make_clusters) {
      TUTTI_ASSIGN_OR_RETURN(clusters_, options.make_clusters(folder_->launcher_file()));
    }
    for (const auto& [name, cluster] : clusters_) engines.clusters[name] = cluster.get();
    TUTTI_ASSIGN_OR_RETURN(service_, service::Service::Open(std::move(service), store_.get(),
                                                            std::move(engines), &clock_));
    return absl::OkStatus();
  }

  absl::Status Listen(const PlatformOptions& options) {
    TUTTI_RETURN_IF_ERROR(folder_->FindFormerAllocations(service_->AllocationsUnderWay()));
    api::ApiOptions listen{
        .address = options.address,
        .port = options.port,
        .tokens = {.user = folder_->user_token(),
                   .launcher_key = folder_->launcher_key(),
                   .former_launcher = folder_->former_launcher_token(),
                   .former_allocations = folder_->former_allocations(),
                   .may_track = [this](const std::string& run) { return service_->MayTrack(run); }},
        .tracking = tracking_.get(),
        .portal = options.portal,
        .portal_port = options.portal_port,
        .sessions_file = options.directory / "portal-sessions.json"};
    if (options.tls) {
      TUTTI_ASSIGN_OR_RETURN(listen.identity, api::IdentityIn(options.directory, options.address));
    }
    TUTTI_ASSIGN_OR_RETURN(server_, api::ApiServer::Start(listen, service_.get()));
    if (const absl::Status status = folder_->AnnounceToMonitors(); !status.ok()) {
      spdlog::warn("monitors cannot be given a token of their own: {}", status.ToString());
    }
    return folder_->Announce(server_->url(), listen.identity ? listen.identity->certificate() : "");
  }

  EndInTime end_in_time_;
  const base::SystemClock clock_;
  std::unique_ptr<service::StateFolder> folder_;
  std::unique_ptr<base::DiskReserve> reserve_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<tracking::TrackingStore> tracking_store_;
  std::unique_ptr<tracking::ArtifactStore> artifacts_;
  std::unique_ptr<tracking::TrackingServer> tracking_;
  std::unique_ptr<engine::Engine> engine_;
  PlatformOptions::Clusters clusters_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<api::ApiServer> server_;
  std::shared_ptr<void> beside_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Platform>> Platform::Start(const PlatformOptions& options) {
  auto platform = std::make_unique<RunningPlatform>();
  TUTTI_RETURN_IF_ERROR(platform->Open(options));
  return platform;
}

}  // namespace tutti
