// Makes the SQL of a search. Values are bound, never part of the text.
// Internal to platform/tracking.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "platform/store/sqlite_connection.h"
#include "platform/tracking/search/filter.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

using Bound = std::variant<int64_t, double, std::string>;

struct SearchQuery {
  std::string sql;
  std::vector<Bound> values;
};

struct SearchRequest {
  std::vector<Comparison> filter;
  std::vector<Ordering> order;
  ViewType view = ViewType::kActiveOnly;
  int64_t limit = 0;
  int64_t offset = 0;
};

// Selects the sequences of runs of these experiments, the newest first where the order does not say
// more. Nothing is found in no experiment.
SearchQuery RunsQuery(const SearchRequest& request, const std::vector<int64_t>& experiments);
// Selects the sequences of logged models of these experiments, the newest first.
SearchQuery ModelsQuery(const SearchRequest& request, const std::vector<int64_t>& experiments);
// Selects the ids of experiments, the last changed first.
SearchQuery ExperimentsQuery(const SearchRequest& request);

void BindAll(const SearchQuery& query, SQLite::Statement& statement);

}  // namespace tutti::tracking
