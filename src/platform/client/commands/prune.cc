#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr int kKindWidth = 12, kSizeWidth = 8;

// The first digits of a snapshot's hash tell it from others.
std::string ShownName(const std::string& name) {
  return Printable(absl::StartsWith(name, "sha256:") ? absl::StrCat(name.substr(0, 19), "…")
                                                     : name);
}

// The name, and where the thing lies if that is not the service's machine.
std::string Shown(const RemovalView& one) {
  const std::string name = ShownName(one.name);
  return one.place.empty() ? name : absl::StrCat(name, " (", Printable(one.place), ")");
}

void Show(Context& context, const PrunedView& pruned) {
  int width = 0;
  for (const RemovalView& one : pruned.removed) width = std::max(width, Columns(Shown(one)));
  for (const RemovalView& one : pruned.removed) {
    context.out << PadRight(Printable(one.kind), kKindWidth) << "  " << PadRight(Shown(one), width)
                << "  " << PadLeft(Bytes(one.bytes), kSizeWidth) << "  " << Printable(one.why)
                << "\n";
  }
  context.out << (pruned.removed.empty() ? "nothing" : Bytes(pruned.bytes))
              << (pruned.dry_run ? " would be removed" : " removed") << "\n";
}

}  // namespace

absl::StatusOr<ExitCode> EnvironmentPrune(Context& context,
                                          const EnvironmentPruneOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(std::string text,
                         service.PruneEnvironments(/*dry_run=*/true, options.unused_for));
  TUTTI_ASSIGN_OR_RETURN(PrunedView pruned, Parse<PrunedView>(text));
  Show(context, pruned);
  if (pruned.removed.empty()) return ExitCode::kOk;
  TUTTI_ASSIGN_OR_RETURN(const bool may, MayRemove(context, options.yes, "Remove them?"));
  if (!may) return ExitCode::kOk;
  TUTTI_ASSIGN_OR_RETURN(text, service.PruneEnvironments(/*dry_run=*/false, options.unused_for));
  TUTTI_ASSIGN_OR_RETURN(pruned, Parse<PrunedView>(text));
  Show(context, pruned);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Prune(Context& context, const PruneOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         service.Prune(options.dry_run, options.clock_is_right));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const PrunedView pruned, Parse<PrunedView>(text));
  Show(context, pruned);
  const spec::KeptModelsView& models = pruned.models;
  if (models.versions > 0) {
    context.out << WithCommas(models.versions)
                << (models.versions == 1 ? " version of a model keeps "
                                         : " versions of models keep ")
                << Bytes(models.bytes) << ", which stays until tutti model delete\n";
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
