// AllMigrations defines the layout of the store's database by the steps that lead to it. Only the
// store itself uses it.
#pragma once

#include "platform/store/database.h"

namespace tutti::store {

// Never edit a step that a release has had; add the next one. Each runs in one transaction.
const Migrations& AllMigrations();

}  // namespace tutti::store
