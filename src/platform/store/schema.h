// Defines the layout of the store's database, as the migrations that lead to it. Inside the room
// store only.
#pragma once

#include "platform/store/database.h"

namespace tutti::store {

// Never edit a step that a release has had; add the next one. Each runs in one transaction.
const Migrations& AllMigrations();

}  // namespace tutti::store
