import Keyv from 'keyv'
import type { ApplicationStore, JobStore } from 'stemwork'
import { keyvApplications, keyvJobs, keyvStores, type KeyvStores } from 'stemwork/keyv'
import { expectType } from './expect-type.js'

const keyv = new Keyv()
expectType<JobStore>()(keyvJobs({ keyv, timeoutMs: 1000 }))
expectType<ApplicationStore>()(keyvApplications({ keyv }))

expectType<KeyvStores>()(keyvStores({ keyv, idempotencyMs: 1000 }))

// @ts-expect-error: a Map is not a Keyv
keyvJobs({ keyv: new Map() })
