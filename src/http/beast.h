// Declares what this room's sources share of Boost.Beast. Internal to this room.
#pragma once

#include <boost/beast/core/string.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <string>

namespace tutti::http {

namespace beast = boost::beast;
using boost::system::error_code;

inline constexpr size_t kBlockBytes = 64 << 10;  // read from a socket or a file at once

inline std::string Text(beast::string_view text) { return std::string(text.data(), text.size()); }

}  // namespace tutti::http
