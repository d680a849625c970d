// tutti-score: the classes of images, by a trained model. Also `tutti score`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/scoring/report.h"
#include "runtime/scoring/scorer.h"

namespace {

constexpr int kSomeFilesFailed = 1;
constexpr int kCouldNotStart = 2;

struct Options {
  std::vector<std::string> files;
  std::string model;
  int top = 5;
  bool mirrored = false;
  std::string precision = "auto";
  std::string output = "table";
};

void Describe(CLI::App& app, Options& options) {
  app.add_option("FILE", options.files,
                 "Images (JPEG, PNG, PNM, BMP, TIFF, WebP) of any size, or folders of them")
      ->required()
      ->type_name("");
  app.add_option("-m,--model", options.model, "Folder of the model, as tutti-train wrote it")
      ->required()
      ->type_name("DIR");
  app.add_option("-k,--top", options.top, "Show the N most probable classes of each image")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->capture_default_str()
      ->type_name("N");
  app.add_flag("--mirrored", options.mirrored,
               "Score the mean output for each image and its mirror image, as "
               "tutti-train --evaluate-mirrored does: twice the work");
  app.add_option("--precision", options.precision,
                 "fp32, bf16 or auto: what is fastest on this processor")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}).description(""))
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("-o,--output", options.output, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}).description(""))
      ->capture_default_str()
      ->type_name("FORMAT");
  app.set_version_flag("--version", "tutti-score " TUTTI_VERSION);
  app.footer(R"(Examples:
  tutti-score cat.jpg --model outputs/model
  tutti-score photos --model outputs/model --top 1 -o csv > classes.csv

An image of another size than the model's input is resized and cropped at its
centre, as the model's evaluation did.

Exit code: 0 all images were scored; 1 some could not be, each is named on
standard error; 2 wrong usage, or no usable model.)");
}

std::string Format(const Options& options, const std::vector<tutti::scoring::FileScore>& scores) {
  if (options.output == "json") return tutti::scoring::FormatJson(scores);
  if (options.output == "csv") return tutti::scoring::FormatCsv(scores);
  return tutti::scoring::FormatTable(scores);
}

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "tutti-score: %s\n", std::string(status.message()).c_str());
}

int Score(const Options& options) {
  const auto found = tutti::scoring::FindFilesToScore(options.files);
  if (!found.ok()) {
    Complain(found.status());
    return kCouldNotStart;
  }
  for (const std::string& remark : found->remarks) {
    std::fprintf(stderr, "%s\n", remark.c_str());
  }
  auto scorer = tutti::scoring::Scorer::Open(options.model, options.precision);
  if (!scorer.ok()) {
    Complain(scorer.status());
    return kCouldNotStart;
  }
  if (!scorer->precision_taken().empty()) {
    std::fprintf(stderr, "%s\n", scorer->precision_taken().c_str());
  }
  const auto scores = scorer->Score(found->files, options.top, options.mirrored);
  const std::string text = Format(options, scores);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) {
    std::perror("tutti-score: standard output");
    return kCouldNotStart;
  }
  int code = 0;
  for (const auto& score : scores) {
    if (score.status.ok()) continue;
    Complain(score.status);
    code = kSomeFilesFailed;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  tutti::base::StartLogging();
  CLI::App app("Tells the class of images by a trained model.", "tutti-score");
  Options options;
  Describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kCouldNotStart;
  }
  return Score(options);
}
