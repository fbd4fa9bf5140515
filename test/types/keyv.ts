import Keyv from 'keyv'
import type { ApplicationStore, JobStore } from 'stemwork'
import { keyvApplications, keyvJobs } from 'stemwork/keyv'
import { expectType } from './expect-type.js'

const keyv = new Keyv()
expectType<JobStore>()(keyvJobs({ keyv, timeoutMs: 1000 }))
expectType<ApplicationStore>()(keyvApplications({ keyv }))

// @ts-expect-error: a Map is not a Keyv
keyvJobs({ keyv: new Map() })
