import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { describe, expect, it } from 'vitest'
import { StemworkError } from '../../src/core/engine/errors.js'
import { guardedFetch } from '../../src/core/engine/fetch/guarded-fetch.js'
import { noDial, rejection } from './loopback-server.js'

const answers = (addresses: string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: isIP(address) }))

/** Fetches with all network access replaced; returns what would have been resolved and dialled. */
async function attempt(url: string, resolved: string[] = []) {
  const { dial, dialled } = noDial()
  const asked: string[] = []
  const resolver = async (host: string) => {
    asked.push(host)
    return answers(resolved)
  }
  const error = await rejection(guardedFetch(url, { maxBytes: 1000, policy: { resolver }, dial }))
  return { error: error as StemworkError, dialled, asked }
}

describe('a URL whose host is an address inside', () => {
  it.each([
    // Loopback in every spelling
    'http://127.0.0.1/',
    'http://127.1/',
    'http://127.0.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://0x7F.1/',
    'http://0177.0.0.1/',
    'http://0177.0.0.01/',
    'http://017700000001/',
    'http://127.0.0.1./',
    'http://127.000.000.001/',
    'http://00000177.1/',
    'http://１２７.０.０.１/',
    'http://127。0。0。1/',
    'http://①②⑦.⓪.⓪.①/',
    'http://%31%32%37.0.0.1/',
    'http://127.0.0.1:80/',
    'http://127.255.255.254/',
    'https://127.0.0.1/',
    'HTTP://127.0.0.1/',
    '  http://127.0.0.1/',
    'http://127.0.0.1\t/',
    'http:\\\\127.0.0.1\\',
    'http:127.0.0.1',
    'http:///127.0.0.1/',
    'ht\ntp://127.0.0.1/',
    // Every interface and this network
    'http://0.0.0.0/',
    'http://0/',
    'http://0x0/',
    'http://00/',
    // Private, shared, link-local, reserved
    'http://10.0.0.1/',
    'http://10.1/',
    'http://012.0.0.1/',
    'http://172.16.0.1/',
    'http://172.31.255.255/',
    'http://192.168.1.1/',
    'http://192.168.257/',
    'http://3232235777/',
    'http://100.64.0.1/',
    'http://192.0.0.8/',
    'http://192.0.2.1/',
    'http://198.18.0.1/',
    'http://198.51.100.1/',
    'http://203.0.113.1/',
    'http://224.0.0.1/',
    'http://240.0.0.1/',
    'http://255.255.255.255/',
    'http://4294967295/',
    // Metadata services
    'http://169.254.169.254/latest/meta-data/',
    'http://0xa9fea9fe/',
    'http://2852039166/',
    'http://0251.0376.0251.0376/',
    'http://169.254.170.2/v2/credentials',
    'http://100.100.100.200/',
    'http://192.0.0.192/',
    'http://168.63.129.16/',
    'http://[fd00:ec2::254]/',
    'http://[fd20:ce::254]/',
    'http://[::ffff:169.254.169.254]/',
    'http://[64:ff9b::a9fe:a9fe]/',
    // IPv6
    'http://[::]/',
    'http://[::1]/',
    'http://[0:0:0:0:0:0:0:1]/',
    'http://[0000::0001]/',
    'http://[::127.0.0.1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:10.0.0.1]/',
    'http://[::ffff:8.8.8.8]/',
    'http://[::ffff:0:127.0.0.1]/',
    'http://[64:ff9b::127.0.0.1]/',
    'http://[64:ff9b::8.8.8.8]/',
    'http://[64:ff9b:1::10.0.0.1]/',
    'http://[2002:7f00:1::]/',
    'http://[2002:0a00:1::1]/',
    'http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/',
    'http://[2001:db8::1]/',
    'http://[3fff::1]/',
    'http://[fc00::1]/',
    'http://[fd12:3456:789a::1]/',
    'http://[fe80::1]/',
    'http://[febf::1]/',
    'http://[fec0::1]/',
    'http://[ff02::1]/',
    'http://[ff05::1:3]/',
    'http://[100::1]/',
    'http://[5f00::1]/',
  ])('%j is blocked before anything is resolved or dialled', async (url) => {
    const { error, dialled, asked } = await attempt(url)
    expect(error).toBeInstanceOf(StemworkError)
    expect(error).toMatchObject({ code: 'BAD_INPUT', reason: 'blocked_address', retryable: false })
    expect([...dialled, ...asked]).toEqual([])
  })
})

describe('a URL that is wrong in itself', () => {
  it.each([
    'file:///etc/passwd',
    'file://localhost/etc/passwd',
    'ftp://example.com/a.wav',
    'data:audio/wav;base64,AAAA',
    'blob:https://example.com/1',
    'javascript:alert(1)',
    'gopher://example.com/',
    'ws://example.com/',
    'unix:///run/docker.sock',
    'http://user@example.com/',
    'http://user:password@example.com/',
    'http://:password@example.com/',
    'http://example.com%40127.0.0.1/',
    'http://public.example@127.0.0.1/',
    'http://example.com:22/',
    'http://example.com:8080/',
    'https://example.com:8443/',
    'http://example.com:0/',
    'https://example.com:65535/',
    'http://8.8.8.8:25/',
    'http://[2606:4700:4700::1111]:6379/',
    'http://[fe80::1%25eth0]/',
    'http://[fe80::1%eth0]/',
    'http://[::1',
    'http://1.2.3.4.5/',
    'http://256.256.256.256/',
    'http://0x100000000/',
    'http://example.com:99999/',
    'http://exa mple.com/',
    'http://a..b/',
    'http://example.com../',
    'http://./',
    'http://',
    '//example.com/a.wav',
    '/etc/passwd',
    'example.com/a.wav',
    '',
  ])('%j is refused without a dial', async (url) => {
    const { error, dialled } = await attempt(url, ['93.184.216.34'])
    expect(error).toMatchObject({ code: 'BAD_INPUT', reason: 'blocked_address', retryable: false })
    expect(dialled).toEqual([])
  })
})

describe('a host name', () => {
  it.each([
    [['10.0.0.1']],
    [['93.184.216.34', '10.0.0.1']],
    [['127.0.0.1', '93.184.216.34']],
    [['2606:4700:4700::1111', '::1']],
    [['93.184.216.34', '::ffff:127.0.0.1']],
    [['64:ff9b::7f00:1']],
    [['93.184.216.34', 'fe80::1%eth0']],
    [['93.184.216.34', 'not an address']],
    [['0.0.0.0']],
  ])('that resolves to %j is not dialled, and looks like a name that does not exist', async (resolved) => {
    const { error, dialled } = await attempt('http://intranet.example/a.wav', resolved)
    expect(dialled).toEqual([])
    const { error: absent } = await attempt('http://absent.example/a.wav', [])
    const shown = ({ code, reason, message, retryable, details }: StemworkError) => ({
      code,
      reason,
      message,
      retryable,
      details,
    })
    expect(shown(error)).toEqual(shown(absent))
    expect(error.reason).toBe('download_failed')
  })

  it.each([
    'http://localhost/',
    'http://LOCALHOST/',
    'http://localhost./',
    'http://a.localhost/',
    'http://ｌocalhost/',
  ])('%j is blocked by its address', async (url) => {
    const { error, dialled } = await attempt(url, ['127.0.0.1'])
    expect(error).toMatchObject({ code: 'BAD_INPUT', reason: 'blocked_address' })
    expect(dialled).toEqual([])
  })

  it('that is public is dialled at exactly the addresses that were vetted, each once', async () => {
    const { error, dialled, asked } = await attempt('http://Public.Example./a.wav', [
      '93.184.216.34',
      '93.184.216.34',
      '2606:4700:4700::1111',
    ])
    expect(dialled).toEqual(['93.184.216.34', '2606:4700:4700::1111'])
    expect(asked).toEqual(['public.example'])
    expect(error).toMatchObject({ reason: 'download_failed', retryable: true })
  })

  it('is resolved once', async () => {
    const { asked } = await attempt('http://public.example/', ['93.184.216.34'])
    expect(asked).toEqual(['public.example'])
  })
})

describe('the message', () => {
  it('is one and the same for blocked, unresolvable and unreachable URLs, and says nothing of addresses', async () => {
    const errors = await Promise.all([
      attempt('http://10.0.0.1/'),
      attempt('http://example.com:22/', ['93.184.216.34']),
      attempt('ftp://example.com/'),
      attempt('http://inside.example/', ['192.168.0.1']),
      attempt('http://public.example/', ['93.184.216.34']),
      attempt('http://absent.example/', []),
    ])
    const messages = new Set(errors.map(({ error }) => error.message))
    expect(messages.size).toBe(1)
    expect([...messages][0]).not.toMatch(/\d+\.\d+/)
  })

  it('gives the cause to an operator who turned on details, and says that a name is blocked', async () => {
    const { dial } = noDial()
    const policy = { detail: true, resolver: async () => answers(['192.168.0.1']) }
    const error = await rejection(guardedFetch('http://inside.example/', { maxBytes: 1, policy, dial }))
    expect(error).toMatchObject({ reason: 'blocked_address', message: expect.stringContaining('192.168.0.0/16') })
  })
})
