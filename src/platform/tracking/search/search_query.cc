#include "platform/tracking/search/search_query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::tracking {
namespace {

// LIKE of SQL by GLOB, which has regard to case as MLflow does.
std::string GlobOf(absl::string_view pattern) {
  std::string glob;
  for (const char c : pattern) {
    switch (c) {
      case '%':
        glob += '*';
        break;
      case '_':
        glob += '?';
        break;
      case '*':
      case '?':
      case '[':
        absl::StrAppend(&glob, "[", std::string(1, c), "]");
        break;
      default:
        glob += c;
    }
  }
  return glob;
}

absl::string_view SignOf(Operator op) {
  switch (op) {
    case Operator::kEqual:
      return "=";
    case Operator::kNotEqual:
      return "!=";
    case Operator::kLess:
      return "<";
    case Operator::kLessOrEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterOrEqual:
      return ">=";
    case Operator::kLike:
      return "GLOB";
    case Operator::kILike:
      return "LIKE";
    case Operator::kIn:
      return "IN";
    case Operator::kNotIn:
      return "NOT IN";
    case Operator::kIsNull:
    case Operator::kIsNotNull:
      break;
  }
  return "=";
}

// Returns the column of an attribute.
absl::string_view RunColumn(absl::string_view attribute) {
  if (attribute == "run_id") return "r.id";
  if (attribute == "run_name") return "r.name";
  if (attribute == "user_id") return "r.user";
  if (attribute == "artifact_uri") return "r.artifact_uri";
  if (attribute == "start_time") return "r.start_ms";
  if (attribute == "end_time") return "r.end_ms";
  return "CASE r.status WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'SCHEDULED' WHEN 3 THEN 'FINISHED' "
         "WHEN 4 THEN 'FAILED' ELSE 'KILLED' END";
}

absl::string_view ExperimentColumn(absl::string_view attribute) {
  if (attribute == "experiment_id") return "CAST(r.id AS TEXT)";
  if (attribute == "creation_time") return "r.created_ms";
  if (attribute == "last_update_time") return "r.updated_ms";
  return "r.name";
}

absl::string_view ModelColumn(absl::string_view attribute) {
  if (attribute == "model_id") return "r.id";
  if (attribute == "model_type") return "r.type";
  if (attribute == "source_run_id") return "r.source_run";
  if (attribute == "experiment_id") return "CAST(r.experiment AS TEXT)";
  if (attribute == "artifact_location") return "r.artifact_uri";
  if (attribute == "creation_timestamp") return "r.created_ms";
  if (attribute == "last_updated_timestamp") return "r.updated_ms";
  if (attribute == "name") return "r.name";
  return "CASE r.status WHEN 1 THEN 'PENDING' WHEN 2 THEN 'READY' WHEN 3 THEN 'FAILED' "
         "ELSE 'UNSPECIFIED' END";
}

struct Tables {
  absl::string_view rows, id, owner, metrics, params, tags;
};
constexpr Tables kRunTables = {"runs", "sequence", "run", "series", "params", "tags"};
constexpr Tables kExperimentTables = {"experiments", "id", "experiment", "", "", "experiment_tags"};
constexpr Tables kModelTables = {"models",        "sequence",     "model",
                                 "model_metrics", "model_params", "model_tags"};

const Tables& TablesOf(Subject subject) {
  if (subject == Subject::kRuns) return kRunTables;
  return subject == Subject::kModels ? kModelTables : kExperimentTables;
}

// Writes a query; `r` is the run's or the experiment's row.
class QueryWriter {
 public:
  explicit QueryWriter(Subject subject) : subject_(subject), tables_(TablesOf(subject)) {}

  void AddView(ViewType view) {
    if (view == ViewType::kActiveOnly) conditions_.push_back("r.deleted = 0");
    if (view == ViewType::kDeletedOnly) conditions_.push_back("r.deleted != 0");
  }
  void AddCondition(std::string condition) { conditions_.push_back(std::move(condition)); }

  void Add(const Comparison& comparison) {
    switch (comparison.entity) {
      case Entity::kAttribute:
        return conditions_.push_back(Compared(Column(comparison.key), comparison));
      case Entity::kMetric:
      case Entity::kParam:
      case Entity::kTag:
        return AddRow(comparison);
      case Entity::kDataset:
        return AddDataset(comparison);
    }
  }

  void Add(const Ordering& ordering) {
    const absl::string_view direction = ordering.ascending ? " ASC" : " DESC";
    if (ordering.entity == Entity::kAttribute) {
      const bool is_id = subject_ == Subject::kExperiments && ordering.key == "experiment_id";
      const std::string column(is_id ? "r.id" : Column(ordering.key));
      orders_.push_back(absl::StrCat("(", column, ") IS NULL, (", column, ")", direction));
      return;
    }
    if (subject_ == Subject::kModels && ordering.entity == Entity::kMetric) {
      const std::string best =
          absl::StrCat("(SELECT value FROM model_metrics WHERE model = r.sequence AND key = ",
                       Bind(ordering.key), " ORDER BY step DESC, time_ms DESC LIMIT 1)");
      return orders_.push_back(absl::StrCat(best, " IS NULL, ", best, direction));
    }
    const std::string alias = absl::StrCat("o", joins_.size());
    joins_.push_back(absl::StrCat(" LEFT JOIN ", TableOf(ordering.entity), " ", alias, " ON ",
                                  alias, ".", tables_.owner, " = r.", tables_.id, " AND ", alias,
                                  ".key = ", Bind(ordering.key)));
    // NaN comes after all numbers, and runs without the metric come after that.
    orders_.push_back(absl::StrCat(alias, ".key IS NULL, ", alias, ".value IS NULL, ", alias,
                                   ".value", direction));
  }

  SearchQuery Finish(const SearchRequest& request, absl::string_view last_order) && {
    orders_.emplace_back(last_order);
    const std::string where =
        conditions_.empty() ? "" : absl::StrCat(" WHERE ", absl::StrJoin(conditions_, " AND "));
    const std::string limit = Bind(request.limit);
    const std::string offset = Bind(request.offset);
    return {absl::StrCat("SELECT r.", tables_.id, " FROM ", tables_.rows, " r",
                         absl::StrJoin(joins_, ""), where, " ORDER BY ",
                         absl::StrJoin(orders_, ", "), " LIMIT ", limit, " OFFSET ", offset),
            std::move(values_)};
  }

 private:
  std::string Bind(Bound value) {
    values_.push_back(std::move(value));
    return absl::StrCat("?", values_.size());
  }
  absl::string_view Column(absl::string_view attribute) const {
    if (subject_ == Subject::kRuns) return RunColumn(attribute);
    return subject_ == Subject::kModels ? ModelColumn(attribute) : ExperimentColumn(attribute);
  }
  absl::string_view TableOf(Entity entity) const {
    if (entity == Entity::kMetric) return tables_.metrics;
    return entity == Entity::kParam ? tables_.params : tables_.tags;
  }

  // "COLUMN OP VALUE".
  std::string Compared(absl::string_view column, const Comparison& comparison) {
    const absl::string_view sign = SignOf(comparison.op);
    if (comparison.texts.empty()) {
      return absl::StrCat("(", column, ") ", sign, " ", Bind(comparison.number));
    }
    if (comparison.op == Operator::kIn || comparison.op == Operator::kNotIn) {
      std::vector<std::string> values;
      for (const std::string& text : comparison.texts) values.push_back(Bind(text));
      return absl::StrCat("(", column, ") ", sign, " (", absl::StrJoin(values, ", "), ")");
    }
    const std::string& text = comparison.texts.front();
    return absl::StrCat("(", column, ") ", sign, " ",
                        Bind(comparison.op == Operator::kLike ? GlobOf(text) : text));
  }

  void AddRow(const Comparison& comparison) {
    const std::string row =
        absl::StrCat("EXISTS (SELECT 1 FROM ", TableOf(comparison.entity), " x WHERE x.",
                     tables_.owner, " = r.", tables_.id, " AND x.key = ", Bind(comparison.key));
    if (comparison.op == Operator::kIsNotNull) return conditions_.push_back(row + ")");
    if (comparison.op == Operator::kIsNull) return conditions_.push_back("NOT " + row + ")");
    std::string compared = Compared("x.value", comparison);
    // NaN differs from all numbers.
    if (comparison.entity == Entity::kMetric && comparison.op == Operator::kNotEqual) {
      compared = absl::StrCat("(", compared, " OR x.value IS NULL)");
    }
    conditions_.push_back(absl::StrCat(row, " AND ", compared, ")"));
  }

  void AddDataset(const Comparison& comparison) {
    constexpr absl::string_view kInputs =
        "EXISTS (SELECT 1 FROM inputs i JOIN datasets d ON d.id = i.dataset";
    if (comparison.key == "context") {
      conditions_.push_back(
          absl::StrCat(kInputs, " JOIN json_each(i.tags) j WHERE i.run = r.sequence AND ",
                       "j.key = 'mlflow.data.context' AND ", Compared("j.value", comparison), ")"));
      return;
    }
    conditions_.push_back(absl::StrCat(kInputs, " WHERE i.run = r.sequence AND ",
                                       Compared(absl::StrCat("d.", comparison.key), comparison),
                                       ")"));
  }

  const Subject subject_;
  const Tables& tables_;
  std::vector<std::string> joins_, conditions_, orders_;
  std::vector<Bound> values_;
};

SearchQuery QueryWithin(Subject subject, const SearchRequest& request,
                        const std::vector<int64_t>& experiments, absl::string_view last_order) {
  QueryWriter query(subject);
  query.AddCondition(absl::StrCat("r.experiment IN (", absl::StrJoin(experiments, ","), ")"));
  query.AddView(request.view);
  for (const Comparison& comparison : request.filter) query.Add(comparison);
  for (const Ordering& ordering : request.order) query.Add(ordering);
  return std::move(query).Finish(request, last_order);
}

}  // namespace

SearchQuery RunsQuery(const SearchRequest& request, const std::vector<int64_t>& experiments) {
  return QueryWithin(Subject::kRuns, request, experiments, "r.start_ms DESC, r.id");
}

SearchQuery ModelsQuery(const SearchRequest& request, const std::vector<int64_t>& experiments) {
  return QueryWithin(Subject::kModels, request, experiments, "r.created_ms DESC, r.sequence DESC");
}

SearchQuery ExperimentsQuery(const SearchRequest& request) {
  QueryWriter query(Subject::kExperiments);
  query.AddView(request.view);
  for (const Comparison& comparison : request.filter) query.Add(comparison);
  for (const Ordering& ordering : request.order) query.Add(ordering);
  return std::move(query).Finish(request,
                                 request.order.empty() ? "r.updated_ms DESC, r.id DESC" : "r.id");
}

void BindAll(const SearchQuery& query, SQLite::Statement& statement) {
  int index = 0;
  for (const Bound& value : query.values) {
    ++index;
    std::visit([&](const auto& bound) { statement.bind(index, bound); }, value);
  }
}

}  // namespace tutti::tracking
