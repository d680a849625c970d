#include "platform/launch/mpi/mpi_agreement.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/mpi/slurm_pmix.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/program_names.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// How long the launchers of a gang, all prepared, have to meet.
constexpr absl::Duration kMeeting = absl::Minutes(2);

absl::Status LinkThisProgram(const fs::path& folder) {
  const fs::path link = folder / kLauncherLink;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  // One that was replaced since, as by an upgrade, is there by this process alone.
  if (!fs::exists(program, error)) program = absl::StrCat("/proc/", ::getpid(), "/exe");
  if (!error) fs::remove(link, error);
  if (!error) fs::create_symlink(program, link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", link.string()), error.value());
  return absl::OkStatus();
}

// Returns what this node could do: `way` and `program`.
MpiAgreement OfferOf(const spec::LaunchPlan& plan, const NodeFacts& facts, bool may_use_pmix,
                     const std::atomic<bool>& cancelled) {
  MpiAgreement offer;
  const bool asks = may_use_pmix && plan.node_index == 0;
  offer.program = asks ? FindSrunWithPmix(facts.own, cancelled) : "";
  offer.way = MpiWay::kPmix;
  if (offer.program.empty()) {
    offer.program = FindOpenMpi(plan, EnvironmentOf(plan, 0, facts));
    offer.way = offer.program.empty() ? MpiWay::kNone : MpiWay::kMpirun;
  }
  return offer;
}

std::vector<int> SocketsOf(GangLink& link) {
  std::vector<int> sockets;
  for (const auto& [node, socket] : link.peers()) sockets.push_back(socket.fd());
  return sockets;
}

// The launchers start the ranks.
MpiAgreement OnPmi(const spec::LaunchPlan& plan, GangLink& link, std::shared_ptr<PmiServer> pmi) {
  MpiAgreement agreement;
  agreement.pmi = std::move(pmi);
  agreement.pmi_address = absl::StrCat(PmiServer::AddressFor(plan), ":", link.pmi_port());
  if (agreement.pmi != nullptr) agreement.pmi->Serve(SocketsOf(link));
  return agreement;
}

}  // namespace

fs::path SocketFolder(const spec::LaunchPlan& plan, const NodeFacts& facts) {
  return facts.temporary.empty() ? NodeFolders(plan.directory).scratch()
                                 : fs::path(facts.temporary);
}

absl::StatusOr<MpiAgreement> AgreeOnMpi(const spec::LaunchPlan& plan, const NodeFacts& facts,
                                        const std::atomic<bool>& cancelled) {
  if (!WantsMpi(plan)) return MpiAgreement();
  const bool may_use_pmix = MayUsePmix(plan, facts.own);
  MpiAgreement agreement = OfferOf(plan, facts, may_use_pmix, cancelled);
  // Before they meet: who connects may do so as soon as all have.
  if (may_use_pmix || agreement.way != MpiWay::kNone) {
    const fs::path folder = SocketFolder(plan, facts);
    TUTTI_RETURN_IF_ERROR(LinkThisProgram(folder));
    TUTTI_ASSIGN_OR_RETURN(agreement.listener, RankListener::Open(folder / kLauncherSocketName));
  }
  // What the first node says of PMIx stands for all.
  if (plan.node_index == 0 && agreement.way != MpiWay::kPmix) {
    TUTTI_ASSIGN_OR_RETURN(agreement.pmi, PmiServer::Listen(plan));
  }
  const int pmi_port = agreement.pmi == nullptr ? 0 : agreement.pmi->port();
  TUTTI_ASSIGN_OR_RETURN(agreement.link, GangLink::Meet(plan, agreement.way, pmi_port, cancelled,
                                                        base::Deadline::After(kMeeting)));
  agreement.way = agreement.link->way();
  if (agreement.way == MpiWay::kNone || !agreement.listener) {
    return OnPmi(plan, *agreement.link, std::move(agreement.pmi));
  }
  agreement.pmi.reset();
  return agreement;
}

}  // namespace tutti::launch
