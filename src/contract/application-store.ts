import assert from 'node:assert/strict'
import type { ApiKey, Application, ApplicationStore } from '../core/engine/ports/application-store.js'
import { assertNone } from './broken-promise.js'
import { type Cases, type ContractApi, registerSuite, type Skips } from './suite.js'

export interface OpenApplicationStore {
  store: ApplicationStore
  /** Closes the store and removes what it left. */
  close(): Promise<void>
}

export interface ApplicationStoreHarness {
  /** An empty store. Called once for each case. */
  open(): Promise<OpenApplicationStore>
  skips?: Skips<ApplicationStoreCase>
  /** Time limit of each case. Default: 30,000. */
  timeoutMs?: number
}

/** Proves that a store fulfils the `ApplicationStore` port. */
export function applicationStoreContract(api: ContractApi, harness: ApplicationStoreHarness): void {
  registerSuite(api, 'the application store contract', { 'applications and keys': applicationCases }, harness)
}

export type ApplicationStoreCase = keyof typeof applicationCases

const webhook = {
  url: 'https://example.com/hook?a=b',
  events: ['job.succeeded', 'job.failed'],
}

const applicationCases = {
  async 'an application is read back as it was put'({ store }) {
    for (const each of [
      application('a', { webhook, webhookSecrets: [{ secret: 'whsec_c2VjcmV0', expiresAt: null }] }),
      application('b', { name: 'Ünï "🎵"', webhook: { ...webhook, events: null } }),
      application('c'),
      application('d', { quota: { jobs: 0, audioMinutes: 1.5, bytes: 2 ** 40 }, maxQueuedJobs: 7 }),
    ]) {
      await store.putApplication(each)
      assert.deepEqual(await store.getApplication(each.id), each, 'An application must be read back as it was put.')
    }
  },

  async 'putting an application again replaces it'({ store }) {
    await store.putApplication(application('a', { webhook }))
    const renamed = application('a', { name: 'renamed' })
    await store.putApplication(renamed)
    assert.deepEqual(await store.getApplication('a'), renamed, 'A later put replaces the application.')
    assert.deepEqual(await store.listApplications(), [renamed], 'A replaced application is listed once, as it is now.')
  },

  async 'reading what does not exist gives undefined or an empty list'({ store }) {
    assert.deepEqual(await store.listApplications(), [], 'An empty store lists no applications.')
    await store.putApplication(application('a'))
    await store.putKey(key('k', 'a'))
    for (const id of ['', 'b', 'k0', "' or 1=1 --", '__proto__', '%']) {
      assertNone(await store.getApplication(id), `No application has the id ${JSON.stringify(id)}.`)
      assertNone(await store.getKey(id), `No key has the id ${JSON.stringify(id)}.`)
      assert.deepEqual(await store.listKeys(id), [], `No application ${JSON.stringify(id)} has keys.`)
    }
  },

  async 'applications are listed newest first'({ store }) {
    for (const [id, createdAt] of [
      ['a', 2000],
      ['b', 3000],
      ['c', 1000],
    ] as const)
      await store.putApplication(application(id, { createdAt }))
    assert.deepEqual(
      (await store.listApplications()).map(({ id }) => id),
      ['b', 'a', 'c'],
      'Applications are listed by createdAt, the newest first.',
    )
  },

  async 'a key is read back as it was put, and putting it again (to revoke it) replaces it'({ store }) {
    const first = key('k', 'a', { label: 'laptop' })
    await store.putKey(first)
    assert.deepEqual(await store.getKey('k'), first, 'A key is read back as it was put.')
    const revoked = { ...first, expiresAt: 5000 }
    await store.putKey(revoked)
    assert.deepEqual(await store.getKey('k'), revoked, 'A later put replaces the key.')
    assert.deepEqual(await store.listKeys('a'), [revoked], 'A replaced key is listed once, as it is now.')
  },

  async 'the keys of an application, expired ones too, are listed newest first, and no other keys'({ store }) {
    const keys = [
      key('k1', 'a', { createdAt: 1 }),
      key('k2', 'a', { createdAt: 3, expiresAt: 4 }),
      key('k3', 'a', { createdAt: 2 }),
      key('k4', 'b', { createdAt: 9 }),
    ]
    for (const each of keys) await store.putKey(each)
    assert.deepEqual(
      (await store.listKeys('a')).map(({ id }) => id),
      ['k2', 'k3', 'k1'],
      'The keys of an application are listed by createdAt, the newest first, expired ones too.',
    )
    assert.deepEqual(await store.listKeys('b'), [keys[3]], 'The keys of one application are not listed for another.')
  },

  async 'a deleted key is gone, and others are not'({ store }) {
    // Optional, as stores of earlier versions lack it.
    if (!store.deleteKey) return
    for (const id of ['k1', 'k2']) await store.putKey(key(id, 'a'))
    await store.deleteKey({ id: 'k1', app: 'a' })
    await store.deleteKey({ id: 'k1', app: 'a' })
    assertNone(await store.getKey('k1'), 'A deleted key is not found.')
    assert.deepEqual(await store.listKeys('a'), [key('k2', 'a')], 'A deleted key is not listed, and others are.')
    await store.putKey(key('k1', 'a'))
    assert.deepEqual(await store.getKey('k1'), key('k1', 'a'), 'A key may be put again after it was deleted.')
  },

  async 'a caller may change the records that it passed or received without changing the store'({ store }) {
    const given = application('a', { webhook: structuredClone(webhook) })
    const expected = structuredClone(given)
    await store.putApplication(given)
    given.webhook?.events?.push('spoiled')
    const read = await store.getApplication('a')
    Reflect.set(read ?? {}, 'name', 'spoiled')
    read?.webhook?.events?.push('spoiled')
    assert.deepEqual(
      await store.getApplication('a'),
      expected,
      'What a caller changes in an application that it handed in or was given does not reach the store.',
    )
    const handedIn = key('k', 'a')
    const original = { ...handedIn }
    await store.putKey(handedIn)
    handedIn.hash = 'spoiled'
    for (const each of [await store.getKey('k'), ...(await store.listKeys('a'))])
      Reflect.set(each ?? {}, 'hash', 'spoiled')
    assert.deepEqual(
      await store.getKey('k'),
      original,
      'What a caller changes in a key that it handed in or was given does not reach the store.',
    )
  },

  async 'no simultaneous put is lost'({ store }) {
    await Promise.all(Array.from({ length: 30 }, (_, n) => store.putKey(key(`k${n}`, 'a', { createdAt: n }))))
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => store.putApplication(application(`a${n}`, { createdAt: n }))),
    )
    assert.equal((await store.listKeys('a')).length, 30, 'None of 30 simultaneous puts of keys is lost.')
    assert.equal((await store.listApplications()).length, 30, 'None of 30 simultaneous puts of applications is lost.')
  },
} satisfies Cases<OpenApplicationStore>

function application(id: string, fields: Partial<Application> = {}): Application {
  return { id, name: `Application ${id}`, createdAt: 1_760_000_000_000, webhook: null, ...fields }
}

function key(id: string, app: string, fields: Partial<ApiKey> = {}): ApiKey {
  return { id, app, hash: 'ab'.repeat(32), label: null, createdAt: 1_760_000_000_000, expiresAt: null, ...fields }
}
