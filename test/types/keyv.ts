import Keyv from 'keyv'
import type { ApplicationStore, JobStore } from 'stemwork'
import { keyvApplications, keyvJobs, keyvStores, type KeyvStores } from 'stemwork/keyv'
import { expectType } from './expect-type.js'

const keyv = new Keyv()
const stores: KeyvStores = keyvStores({ keyv, idempotencyMs: 1000, timeoutMs: 1000 })
expectType<JobStore>()(stores.jobs)
expectType<ApplicationStore>()(stores.applications)

// @ts-expect-error: a Map is not a Keyv
keyvStores({ keyv: new Map() })

expectType<'Renamed: keyvStores({ keyv }).jobs'>()(keyvJobs)
expectType<'Renamed: keyvStores({ keyv }).applications'>()(keyvApplications)
