#pragma once

#include "platform/store/database.h"

namespace tutti::tracking {

// Returns the layouts of tracking.db, one step each.
const store::Migrations& AllMigrations();

}  // namespace tutti::tracking
