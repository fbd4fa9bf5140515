import { within } from '../core/engine/ports/within.js'
import { brokenPromise } from './broken-promise.js'

/** The part of a test runner that a suite needs. vitest, node:test, jest and mocha (`it` as `test`) fit as they are. */
export interface ContractApi {
  describe(name: string, body: () => void): unknown
  test: {
    (name: string, body: () => Promise<void>): unknown
    skip(name: string, body: () => Promise<void>): unknown
  }
}

/** Cases by the sentence that they prove. */
export type Cases<Context> = Record<string, (context: Context) => Promise<void>>

/**
 * Sentences of cases that an adapter does not fulfil, each with the reason. They are reported as skipped, with that
 * reason.
 */
export type Skips<Name extends string> = Partial<Record<Name, string>>

interface Harness<Context> {
  skips?: Record<string, string | undefined>
  /** Time limit of each case, from its opening to its closing. Default: 30,000. */
  timeoutMs?: number
  /** A fresh, empty store or queue for each case. */
  open(): Promise<Context>
}

/** More than any case takes on a slow server, and short enough to wait for. */
const defaultTimeoutMs = 30_000

export function registerSuite<Context extends { close(): Promise<void> }>(
  api: ContractApi,
  title: string,
  groups: Record<string, Cases<Context>>,
  harness: Harness<Context>,
): void {
  const { skips = {}, timeoutMs = defaultTimeoutMs } = harness
  refuseUnknownSkips(groups, skips)
  api.describe(title, () => {
    for (const [group, cases] of Object.entries(groups)) {
      api.describe(group, () => {
        for (const [name, body] of Object.entries(cases)) {
          const run = () =>
            inTime(`${group}: ${name}`, timeoutMs, async (at) => {
              at('open() of the harness')
              const context = await harness.open()
              try {
                at('the case')
                await body(context).catch((error: unknown) => {
                  throw brokenPromise(name, error)
                })
              } finally {
                at('close() of the harness')
                await context.close()
              }
            })
          const reason = skips[name]
          if (reason === undefined) api.test(name, run)
          else api.test.skip(`${name} (skipped: ${reason})`, run)
        }
      })
    }
  })
}

/**
 * Limits the time of a case: a call of the adapter that never settles would hang the whole run or, in runners without a
 * timeout, fail without a name.
 */
async function inTime(
  name: string,
  timeoutMs: number,
  run: (at: (step: string) => void) => Promise<void>,
): Promise<void> {
  let step = ''
  const late = () =>
    new Error(
      `"${name}" did not end within ${timeoutMs} ms: ${step} is still waiting, so a call of the adapter has not ` +
        'settled, or a put that failed did not close its source. Every call must end, with an error if need be; a ' +
        'slow server may need more `timeoutMs`.',
    )
  await within(
    run((now) => void (step = now)),
    timeoutMs,
    late,
  )
}

/** A skip that names no case would hide that the case was renamed and now runs, or that it never existed. */
function refuseUnknownSkips(groups: Record<string, object>, skips: Record<string, string | undefined>): void {
  const names = new Set(Object.values(groups).flatMap((cases) => Object.keys(cases)))
  for (const [name, reason] of Object.entries(skips)) {
    if (!names.has(name))
      throw new TypeError(
        `The skip "${name}" names no case of the contract. Expected one of its sentences, word for word.`,
      )
    if (!reason?.trim()) throw new TypeError(`The skip "${name}" has no reason. Write why the adapter cannot keep it.`)
  }
}
