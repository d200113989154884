// SPDX-License-Identifier: Apache-2.0
// Descriptors as structures, taken from the bytes that a device shows. A structure and what hangs on it are allocated
// one by one, as programs may only give them back whole.
#include <algorithm>
#include <cstdlib>

#include "client.h"

namespace reef::driver {
namespace {

struct EndpointDescriptor {
  std::uint8_t length, type, address, attributes;
  std::uint16_t max_packet;
  std::uint8_t interval, refresh, synch_address;
  const unsigned char* extra;
  int extra_length;
};
struct InterfaceDescriptor {
  std::uint8_t length, type, number, alternate, endpoints, interface_class, subclass, protocol, text;
  EndpointDescriptor* endpoint;
  const unsigned char* extra;
  int extra_length;
};
struct Interface {
  InterfaceDescriptor* alternates;
  int count;
};
struct ConfigDescriptor {
  std::uint8_t length, type;
  std::uint16_t total;
  std::uint8_t interfaces, value, text, attributes, max_power;
  Interface* interface;
  const unsigned char* extra;
  int extra_length;
};
struct CompanionDescriptor {
  std::uint8_t length, type, max_burst, attributes;
  std::uint16_t bytes_per_interval;
};

constexpr std::uint8_t kConfigurationType = 2, kInterfaceType = 4, kEndpointType = 5, kCompanionType = 0x30;
constexpr std::size_t kEndpointBytes = 7, kInterfaceBytes = 9;

template <typename T>
T* make_zeroed() {
  return static_cast<T*>(std::calloc(1, sizeof(T)));
}
template <typename T>
T* grow(T* list, int count) {
  T* const longer = static_cast<T*>(std::realloc(list, sizeof(T) * static_cast<std::size_t>(count + 1)));
  if (longer != nullptr) std::memset(longer + count, 0, sizeof(T));
  return longer;
}

// Bytes of other kinds belong to the descriptor that they follow.
void append_extra(const unsigned char*& extra, int& length, const std::uint8_t* bytes, std::size_t count) {
  auto* const longer = static_cast<unsigned char*>(
      std::realloc(const_cast<unsigned char*>(extra), static_cast<std::size_t>(length) + count));
  if (longer == nullptr) return;
  std::memcpy(longer + length, bytes, count);
  extra = longer;
  length += static_cast<int>(count);
}

std::uint16_t word(const std::uint8_t* bytes) { return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8); }

void add_interface(ConfigDescriptor& config, const std::uint8_t* bytes) {
  const std::uint8_t number = bytes[2];
  if (number >= config.interfaces) return;
  Interface& interface = config.interface[number];
  InterfaceDescriptor* const list = grow(interface.alternates, interface.count);
  if (list == nullptr) return;
  interface.alternates = list;
  std::memcpy(static_cast<void*>(&list[interface.count++]), bytes, kInterfaceBytes);
}

InterfaceDescriptor* last_interface(ConfigDescriptor& config) {
  InterfaceDescriptor* last = nullptr;
  for (int i = 0; i < config.interfaces; ++i) {
    if (config.interface[i].count > 0) last = &config.interface[i].alternates[config.interface[i].count - 1];
  }
  return last;
}

// `filled`: endpoints of the interface that have been read.
void add_endpoint(InterfaceDescriptor& interface, const std::uint8_t* bytes, int& filled) {
  EndpointDescriptor* const list = grow(interface.endpoint, filled);
  if (list == nullptr) return;
  interface.endpoint = list;
  EndpointDescriptor& endpoint = list[filled++];
  endpoint.length = bytes[0];
  endpoint.type = bytes[1];
  endpoint.address = bytes[2];
  endpoint.attributes = bytes[3];
  endpoint.max_packet = word(bytes + 4);
  endpoint.interval = bytes[6];
}

ConfigDescriptor* parse(const std::uint8_t* bytes, std::size_t count) {
  if (count < 9 || bytes[1] != kConfigurationType) return nullptr;
  auto* const config = make_zeroed<ConfigDescriptor>();
  if (config == nullptr) return nullptr;
  config->length = bytes[0];
  config->type = bytes[1];
  config->total = word(bytes + 2);
  config->interfaces = bytes[4];
  config->value = bytes[5];
  config->text = bytes[6];
  config->attributes = bytes[7];
  config->max_power = bytes[8];
  config->interface = static_cast<Interface*>(std::calloc(config->interfaces + 1u, sizeof(Interface)));
  int filled = 0;
  for (std::size_t at = bytes[0]; at + 2 <= count && bytes[at] >= 2 && at + bytes[at] <= count; at += bytes[at]) {
    InterfaceDescriptor* const interface = last_interface(*config);
    if (bytes[at + 1] == kInterfaceType && bytes[at] >= kInterfaceBytes) {
      add_interface(*config, bytes + at);
      filled = 0;
    } else if (bytes[at + 1] == kEndpointType && bytes[at] >= kEndpointBytes && interface != nullptr) {
      add_endpoint(*interface, bytes + at, filled);
    } else if (interface == nullptr) {
      append_extra(config->extra, config->extra_length, bytes + at, bytes[at]);
    } else if (filled > 0) {
      EndpointDescriptor& endpoint = interface->endpoint[filled - 1];
      append_extra(endpoint.extra, endpoint.extra_length, bytes + at, bytes[at]);
    } else {
      append_extra(interface->extra, interface->extra_length, bytes + at, bytes[at]);
    }
  }
  return config;
}

void release(ConfigDescriptor* config) {
  for (int i = 0; i < config->interfaces; ++i) {
    for (int j = 0; j < config->interface[i].count; ++j) {
      InterfaceDescriptor& interface = config->interface[i].alternates[j];
      for (int k = 0; k < interface.endpoints && interface.endpoint != nullptr; ++k) {
        std::free(const_cast<unsigned char*>(interface.endpoint[k].extra));
      }
      std::free(interface.endpoint);
      std::free(const_cast<unsigned char*>(interface.extra));
    }
    std::free(config->interface[i].alternates);
  }
  std::free(config->interface);
  std::free(const_cast<unsigned char*>(config->extra));
  std::free(config);
}

// The largest packet of an endpoint, or an error.
int packet_of(const libusb_device* device, unsigned char endpoint) {
  const std::uint8_t* const bytes = endpoint_of(device, endpoint);
  return bytes != nullptr ? word(bytes + 4) : number::kNotFound;
}

}  // namespace

const std::uint8_t* endpoint_of(const libusb_device* device, unsigned char endpoint) {
  const serve::DeviceRecord& record = device->record;
  for (std::size_t at = 0; at + kEndpointBytes <= record.configuration_bytes && record.configuration[at] > 0;
       at += record.configuration[at]) {
    const std::uint8_t* const bytes = record.configuration + at;
    if (bytes[1] == kEndpointType && bytes[2] == endpoint) return bytes;
  }
  return nullptr;
}
}  // namespace reef::driver

using namespace reef::driver;

REEF_LIBUSB int libusb_get_device_descriptor(libusb_device* device, LibusbDeviceDescriptor* descriptor) {
  std::memcpy(descriptor, device->record.device, sizeof *descriptor);
  return number::kSuccess;
}

REEF_LIBUSB int libusb_get_config_descriptor(libusb_device* device, std::uint8_t index, ConfigDescriptor** config) {
  if (index != 0) return number::kNotFound;
  *config = parse(device->record.configuration, device->record.configuration_bytes);
  return *config != nullptr ? number::kSuccess : number::kIo;
}
REEF_LIBUSB int libusb_get_active_config_descriptor(libusb_device* device, ConfigDescriptor** config) {
  return libusb_get_config_descriptor(device, 0, config);
}
REEF_LIBUSB int libusb_get_config_descriptor_by_value(libusb_device* device, std::uint8_t value,
                                                      ConfigDescriptor** config) {
  constexpr std::size_t kValue = 5;
  return libusb_get_config_descriptor(device, value == device->record.configuration[kValue] ? 0 : 1, config);
}
REEF_LIBUSB void libusb_free_config_descriptor(ConfigDescriptor* config) {
  if (config != nullptr) release(config);
}

REEF_LIBUSB int libusb_get_max_packet_size(libusb_device* device, unsigned char endpoint) {
  return packet_of(device, endpoint);
}
REEF_LIBUSB int libusb_get_max_iso_packet_size(libusb_device* device, unsigned char endpoint) {
  return packet_of(device, endpoint);
}
REEF_LIBUSB int libusb_get_max_alt_packet_size(libusb_device* device, int interface, int alternate,
                                               unsigned char endpoint) {
  return interface == 0 && alternate == 0 ? packet_of(device, endpoint) : number::kNotFound;
}

REEF_LIBUSB int libusb_get_ss_endpoint_companion_descriptor(libusb_context* /*context*/,
                                                            const EndpointDescriptor* endpoint,
                                                            CompanionDescriptor** companion) {
  for (int at = 0; at + 6 <= endpoint->extra_length && endpoint->extra[at] >= 2; at += endpoint->extra[at]) {
    if (endpoint->extra[at + 1] != kCompanionType) continue;
    *companion = make_zeroed<CompanionDescriptor>();
    if (*companion == nullptr) return number::kNoMemory;
    std::memcpy(static_cast<void*>(*companion), endpoint->extra + at, 4);
    (*companion)->bytes_per_interval = word(endpoint->extra + at + 4);
    return number::kSuccess;
  }
  *companion = nullptr;
  return number::kNotFound;
}
REEF_LIBUSB void libusb_free_ss_endpoint_companion_descriptor(CompanionDescriptor* companion) { std::free(companion); }

// Nobody has published the sticks' device capabilities (BOS): the virtual ones have none to show.
REEF_LIBUSB int libusb_get_bos_descriptor(libusb_device_handle* /*handle*/, void** bos) {
  *bos = nullptr;
  return number::kPipe;
}
REEF_LIBUSB void libusb_free_bos_descriptor(void* /*bos*/) {}
REEF_LIBUSB int libusb_get_usb_2_0_extension_descriptor(libusb_context*, void*, void** found) { return none(found); }
REEF_LIBUSB void libusb_free_usb_2_0_extension_descriptor(void*) {}
REEF_LIBUSB int libusb_get_ss_usb_device_capability_descriptor(libusb_context*, void*, void** found) {
  return none(found);
}
REEF_LIBUSB void libusb_free_ss_usb_device_capability_descriptor(void*) {}
REEF_LIBUSB int libusb_get_container_id_descriptor(libusb_context*, void*, void** found) { return none(found); }
REEF_LIBUSB void libusb_free_container_id_descriptor(void*) {}
