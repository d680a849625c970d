// Lists the routes of the portal: its files, and the calls by which a page signs in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "platform/api/portal/portal_sessions.h"
#include "platform/api/routing/router.h"

namespace tutti::api {

struct Portal {
  std::filesystem::path folder;  // what vite has built: index.html, assets/; it may be missing
  PortalSessions* sessions = nullptr;  // null: the service has no portal
  // Returns where this machine's browsers find the portal, "http://127.0.0.1:6281".
  std::function<std::string()> url;
};

// `portal` outlives the routes.
std::vector<Route> PortalRoutes(const Portal* portal);

}  // namespace tutti::api
