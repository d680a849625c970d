// Keeps the formatting of log lines out of every file that logs, which would else compile it for
// itself, for 4 s: log_format.cc has it. Part of the precompiled headers; nothing else needs to
// include it.
#pragma once

#include <spdlog/spdlog.h>

extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);
