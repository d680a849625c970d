// The build runs this to put the schemas of the views (spec/views/) into openapi.json, whose paths,
// requests and other schemas are written by hand:
//   tutti_openapi DOCUMENT RESULT SOURCE
// writes DOCUMENT with those schemas as they are now to RESULT, and to SOURCE the C++ source that
// makes it part of the program. A schema keeps its place in the document; new ones come last.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "spec/views/job_view.h"
#include "spec/views/model_view.h"
#include "spec/views/node_view.h"
#include "spec/views/view_schema.h"

namespace {

using tutti::spec::ViewSchemas;

ViewSchemas AllViews() {
  using namespace tutti::spec;  // NOLINT(google-build-using-namespace): the views alone
  ViewSchemas schemas;
  schemas.Add<JobView>();
  schemas.Add<JobsView>();
  schemas.Add<JobSummariesView>();
  schemas.Add<QueuesView>();
  schemas.Add<EventsView>();
  schemas.Add<TrialPageView>();
  schemas.Add<SubmissionView>();
  schemas.Add<FilesView>();
  schemas.Add<CodeView>();
  schemas.Add<NodesView>();
  schemas.Add<FileServersView>();
  schemas.Add<NodeChecksView>();
  schemas.Add<ProblemsView>();
  schemas.Add<SecretsView>();
  schemas.Add<PrunedView>();
  schemas.Add<ModelsView>();
  schemas.Add<ModelVersionsView>();
  return schemas;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: tutti_openapi DOCUMENT RESULT SOURCE\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  auto document = ViewSchemas::Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) {
    std::fprintf(stderr, "%s: not a JSON object\n", argv[1]);
    return 1;
  }
  auto& schemas = document["components"]["schemas"];
  const ViewSchemas views = AllViews();
  for (const auto& [name, schema] : views.schemas().items()) schemas[name] = schema;
  const std::string text = document.dump(1) + "\n";
  std::ofstream result(argv[2]), source(argv[3]);
  result << text;
  source << "// Made by tutti_openapi from openapi.json and the views.\n"
            "#include \"platform/api/openapi.h\"\n\nnamespace tutti::api {\n\n"
            "absl::string_view OpenApiText() { return R\"openapi("
         << text << ")openapi\"; }\n\n}  // namespace tutti::api\n";
  result.close();
  source.close();
  if (!result || !source) {
    std::fprintf(stderr, "cannot write %s and %s\n", argv[2], argv[3]);
    return 1;
  }
  return 0;
}
