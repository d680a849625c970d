// Maps quantiles in (0, 1) to values of a search space's distributions, and values back to
// quantiles. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/types/sweep.h"

namespace tutti::flow {

// Returns the value at quantile `u`, as it is put into the command: whole numbers as such, others
// as Python's repr writes them ("0.1", "1e-05", "2.0"). `log_base` is that of the log…
// distributions.
std::string ValueAt(const spec::SearchParameter& parameter, double u, double log_base);

// Returns roughly the quantile that has this value; nothing if the parameter cannot have it.
std::optional<double> QuantileOf(const spec::SearchParameter& parameter, absl::string_view value,
                                 double log_base);

// Returns how many values a parameter can have; 0: too many to count.
int64_t CountOf(const spec::SearchParameter& parameter);

// Returns the quantile of the standard normal distribution at `u` in (0, 1), to double precision.
double NormalQuantile(double u);

// Returns the number as Python's repr writes it.
std::string NumberText(double value);

}  // namespace tutti::flow
