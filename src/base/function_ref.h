// SPDX-License-Identifier: Apache-2.0
// A function given for the time of a call: what std::function is without owning, so that nothing is allocated. It must
// not outlive the expression that makes it.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace reef {

template <typename Signature>
class FunctionRef;

template <typename Return, typename... Arguments>
class FunctionRef<Return(Arguments...)> {
 public:
  template <typename Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
           std::is_invocable_r_v<Return, Function&, Arguments...>) FunctionRef(Function&& function)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Arguments... arguments) -> Return {
          return (*static_cast<std::add_pointer_t<Function>>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Return operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  void* object_;
  Return (*call_)(void*, Arguments...);
};

}  // namespace reef
