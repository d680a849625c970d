// Keeps the reading and writing of JSON text out of every file that does either, which would else
// compile it for itself, for 1 s, and, in rooms that are COLD (cmake/tutti_room.cmake), as slow
// code: json_text.cc has it. Part of the precompiled headers; nothing else needs to include it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tutti {

// Where text comes from: characters in memory, or a string.
using JsonCharacters = nlohmann::detail::iterator_input_adapter<const char*>;
using JsonString = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using JsonTree = nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
using JsonFilteredTree = nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;

}  // namespace tutti

extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
extern template class nlohmann::detail::lexer<nlohmann::json, tutti::JsonCharacters>;
extern template class nlohmann::detail::lexer<nlohmann::json, tutti::JsonString>;
extern template class nlohmann::detail::parser<nlohmann::json, tutti::JsonCharacters>;
extern template class nlohmann::detail::parser<nlohmann::json, tutti::JsonString>;
extern template bool nlohmann::detail::parser<
    nlohmann::json, tutti::JsonCharacters>::sax_parse_internal(tutti::JsonTree*);
extern template bool nlohmann::detail::parser<
    nlohmann::json, tutti::JsonCharacters>::sax_parse_internal(tutti::JsonFilteredTree*);
extern template bool
nlohmann::detail::parser<nlohmann::json, tutti::JsonString>::sax_parse_internal(tutti::JsonTree*);
extern template bool nlohmann::detail::parser<
    nlohmann::json, tutti::JsonString>::sax_parse_internal(tutti::JsonFilteredTree*);
