// Lists and finds the names of environments and components that no command has made: those of
// site.yml and of the built-in table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/data/asset.h"
#include "spec/site/site.h"

namespace tutti::spec {

struct SiteName {
  Asset asset;       // what stands for the name; its name may have "*" for any text
  std::string from;  // "site.yml:7", "site.yml", "built-in table"
};

// Lists the names in the order in which they count, each pattern once.
std::vector<SiteName> SiteNames(const Site& site, AssetKind kind);

// Returns the one that a job file means which writes this.
std::optional<SiteName> FindSiteName(const Site& site, AssetKind kind,
                                     const AssetReference& reference);

}  // namespace tutti::spec
