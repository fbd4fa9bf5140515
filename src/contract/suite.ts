/** What a suite needs of a test runner. vitest, node:test, jest and mocha (`it` as `test`) fit as they are. */
export interface ContractApi {
  describe(name: string, body: () => void): unknown
  test: {
    (name: string, body: () => Promise<void>): unknown
    skip(name: string, body: () => Promise<void>): unknown
  }
}

/** Cases by the sentence that they prove. */
export type Cases<Context> = Record<string, (context: Context) => Promise<void>>

/** Sentences of cases that an adapter does not keep, each with the reason. They are reported as skipped, with that reason. */
export type Skips<Name extends string> = Partial<Record<Name, string>>

export interface Suite<Context extends { close(): Promise<void> }> {
  title: string
  groups: Record<string, Cases<Context>>
  skips: Record<string, string | undefined>
  /** A fresh, empty store or queue for each case. */
  open(): Promise<Context>
}

export function registerSuite<Context extends { close(): Promise<void> }>(
  api: ContractApi,
  { title, groups, skips, open }: Suite<Context>,
): void {
  refuseUnknownSkips(groups, skips)
  api.describe(title, () => {
    for (const [group, cases] of Object.entries(groups)) {
      api.describe(group, () => {
        for (const [name, body] of Object.entries(cases)) {
          const run = async () => {
            const context = await open()
            try {
              await body(context)
            } finally {
              await context.close()
            }
          }
          const reason = skips[name]
          if (reason === undefined) api.test(name, run)
          else api.test.skip(`${name} (skipped: ${reason})`, run)
        }
      })
    }
  })
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
