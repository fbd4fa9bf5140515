import { describe, expect, it } from 'vitest'
import { allowList } from '../../src/core/engine/fetch/allow-list.js'
import { targetOf, vetAddresses, type AddressPolicy } from '../../src/core/engine/fetch/address-guard.js'

describe('an allow-list entry', () => {
  it.each([
    ['10.1.0.0/16', 'nas', '10.1.2.3', 9000, true],
    ['10.1.0.0/16', 'nas', '10.2.2.3', 80, false],
    ['fd00::/8', 'nas', 'fd00::1', 80, true],
    ['fd00::/8', 'nas', 'fc00::1', 80, false],
    ['fd00::/8', 'nas', '10.1.2.3', 80, false],
    ['192.168.1.5', '192.168.1.5', '192.168.1.5', 22, true],
    ['192.168.1.5', '192.168.1.6', '192.168.1.6', 80, false],
    ['192.168.1.5:8080', '192.168.1.5', '192.168.1.5', 8080, true],
    ['192.168.1.5:8080', '192.168.1.5', '192.168.1.5', 80, false],
    ['fd00::5', 'fd00::5', 'fd00::5', 80, true],
    ['[fd00::5]', 'fd00::5', 'fd00:0::5', 80, true],
    ['[fd00::5]:8080', 'fd00::5', 'fd00::5', 8080, true],
    ['[fd00::5]:8080', 'fd00::5', 'fd00::5', 80, false],
    ['nas.local', 'nas.local', '10.0.0.9', 1234, true],
    ['NAS.local.', 'nas.local', '10.0.0.9', 80, true],
    ['nas.local:8080', 'nas.local', '10.0.0.9', 8080, true],
    ['nas.local:8080', 'nas.local', '10.0.0.9', 80, false],
    ['nas.local', 'evil.nas.local', '10.0.0.9', 80, false],
    ['nas.local', 'nas.local.evil.example', '10.0.0.9', 80, false],
    ['127.0.0.0/8', 'nas', '::ffff:127.0.0.1', 80, true],
    ['10.0.0.0/8', 'nas', 'not an address', 80, false],
  ])('%s: is %s at %s, port %d, open? %s', (entry, host, address, port, open) => {
    expect(allowList([entry]).allows(host, address, port)).toBe(open)
  })

  it.each([
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    'fd00::/129',
    '10.0.0.0/-1',
    '',
    ':80',
    'nas:0',
    'nas:70000',
    'user@nas',
    'nas/path',
    'http://nas',
    '*.local',
    'n as',
    '[fd00::5',
    'fd00::5]:80',
  ])('%j is refused by name', (entry) => {
    expect(() => allowList([entry])).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTIONS', message: expect.stringContaining(JSON.stringify(entry)) }),
    )
  })
})

describe('the policy', () => {
  const opens = (url: string, addresses: string[], policy: AddressPolicy) => {
    try {
      const target = targetOf(url, policy)
      vetAddresses(
        target,
        target.literal ? [{ address: target.host, family: 0 }] : addresses.map((address) => ({ address, family: 0 })),
        policy,
      )
      return true
    } catch {
      return false
    }
  }

  it.each<[string, string[], AddressPolicy, boolean]>([
    ['http://93.184.216.34/', [], {}, true],
    ['http://93.184.216.34:8080/', [], {}, false],
    ['http://93.184.216.34:8080/', [], { ports: [8080] }, true],
    ['http://10.0.0.1:8080/', [], { ports: [8080] }, false],
    ['http://10.0.0.1/', [], { allowPrivate: true }, true],
    ['http://10.0.0.1:8080/', [], { allowPrivate: true }, true],
    ['http://[::1]:8080/', [], { allowPrivate: true }, true],
    ['http://93.184.216.34:8080/', [], { allowPrivate: true }, false],
    ['http://nas.local/', ['10.0.0.1'], { allow: ['nas.local'] }, true],
    ['http://nas.local./', ['10.0.0.1'], { allow: ['nas.local'] }, true],
    ['http://nas.local/', ['10.0.0.1', '192.168.0.1'], { allow: ['10.0.0.0/8'] }, false],
    ['http://other.local/', ['10.0.0.1'], { allow: ['nas.local'] }, false],
    ['http://93.184.216.34:8080/', [], { allow: ['93.184.216.34:8080'] }, true],
    ['ftp://nas.local/', ['10.0.0.1'], { allow: ['nas.local'], allowPrivate: true }, false],
    ['http://user@nas.local/', ['10.0.0.1'], { allow: ['nas.local'], allowPrivate: true }, false],
  ])('%s at %j under %j: open? %s', (url, addresses, policy, open) => {
    expect(opens(url, addresses, policy)).toBe(open)
  })
})
