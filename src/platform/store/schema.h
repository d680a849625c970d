// The layout of the store's database, step by step. Inside the room store only.
#pragma once

#include "platform/store/database.h"

namespace tutti::store {

// Never edit a step that a release has had; add the next one. Each runs in one transaction.
const Migrations& AllMigrations();

}  // namespace tutti::store
