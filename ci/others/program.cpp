// Something for the compiler to do: its trace has templates in templates, which often begin at one time.
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>

int main(int count, char **texts) {
  std::map<std::string, std::map<std::string, int>> found;
  for (int i = 0; i < count; i++) {
    found[texts[i]]["matches"] += std::regex_match(texts[i], std::regex("[a-z]+(/[a-z]+)*"));
  }
  std::for_each(found.begin(), found.end(), [](const auto &entry) { std::cout << entry.first << "\n"; });
}
