#include "platform/service/secrets/image_logins.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/types/registry_secret.h"

namespace tutti::service {
namespace {

bool HasImage(const spec::JobSpec& job) {
  return !job.environment.image.empty() ||
         std::any_of(job.steps.begin(), job.steps.end(),
                     [](const spec::Step& step) { return HasImage(step.job); });
}

// The registries of the images, with the place of the first image that comes from each.
void CollectRegistries(const spec::JobSpec& job, const Engines& engines,
                       std::map<std::string, std::string>& registries) {
  for (const spec::Step& step : job.steps) CollectRegistries(step.job, engines, registries);
  const spec::Image& image = job.environment.image;
  const engine::Engine* const engine = engines.Of(job.compute);
  const bool reaches = engine == nullptr || engine->LaunchersReachService();
  if (image.empty() || job.kind == spec::JobKind::kPipeline || !reaches) return;
  for (const std::string& host : container::RegistriesOf(image)) {
    registries.try_emplace(host, image.location);
  }
}

}  // namespace

std::set<std::string> LoginSecretsOf(const spec::Image& image, const std::set<std::string>& known) {
  std::set<std::string> names;
  if (image.empty()) return names;
  const bool is_built = !image.context.empty();
  const std::set<std::string> own =
      is_built ? std::set<std::string>() : container::RegistriesOf(image);
  for (const std::string& name : known) {
    const std::string host = spec::RegistryOfSecret(name);
    if (!host.empty() && (is_built || own.contains(host))) names.insert(name);
  }
  return names;
}

absl::StatusOr<container::Logins> LoginsOfImages(const spec::JobSpec& job, store::Store& store,
                                                 const Secrets& secrets, const Engines& engines,
                                                 base::Faults& faults) {
  container::Logins logins;
  if (!HasImage(job)) return logins;
  TUTTI_ASSIGN_OR_RETURN(const std::set<std::string> known, store.SecretNames());
  const bool has_any = std::any_of(known.begin(), known.end(), [](const std::string& name) {
    return !spec::RegistryOfSecret(name).empty();
  });
  if (!has_any) return logins;
  std::map<std::string, std::string> registries;
  CollectRegistries(job, engines, registries);
  for (const auto& [host, location] : registries) {
    const std::string name = spec::SecretOfRegistry(host);
    if (!known.contains(name)) continue;
    const auto values = secrets.ValuesOf({name});
    if (absl::IsUnavailable(values.status())) return values.status();
    auto login = values.ok() ? container::LoginsFrom(*values, {host})
                             : absl::StatusOr<container::Logins>(values.status());
    if (login.ok()) {
      logins.merge(*login);
    } else {
      faults.Add(
          absl::InvalidArgumentError(absl::StrCat(location, ": ", login.status().message())));
    }
  }
  return logins;
}

}  // namespace tutti::service
