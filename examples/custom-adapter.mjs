// An adapter of your own with the contract suite that checks it. Run it with: node --test examples/custom-adapter.mjs
// This one keeps applications and their keys in a JSON file, which suits a handful of them.
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { applicationStoreContract } from 'stemwork/contract'

export function jsonFileApplications({ path }) {
  let last = Promise.resolve()
  const read = async () => {
    try {
      const { applications, keys } = JSON.parse(await readFile(path, 'utf8'))
      return { applications: new Map(applications), keys: new Map(keys) }
    } catch (error) {
      if (error.code === 'ENOENT') return { applications: new Map(), keys: new Map() }
      throw error
    }
  }
  // One change at a time, each published by a rename: a crash leaves the old file or the new one.
  const change = (apply) => {
    const changed = last.then(async () => {
      const state = await read()
      apply(state)
      await writeFile(`${path}.new`, JSON.stringify({ applications: [...state.applications], keys: [...state.keys] }))
      await rename(`${path}.new`, path)
    })
    last = changed.catch(() => {})
    return changed
  }
  return {
    putApplication: (application) => change(({ applications }) => applications.set(application.id, application)),
    getApplication: async (id) => (await read()).applications.get(id),
    listApplications: async () => [...(await read()).applications.values()].sort(newestFirst),
    putKey: (key) => change(({ keys }) => keys.set(key.id, key)),
    getKey: async (id) => (await read()).keys.get(id),
    listKeys: async (app) => [...(await read()).keys.values()].filter((key) => key.app === app).sort(newestFirst),
  }
}

const newestFirst = (a, b) => b.createdAt - a.createdAt

applicationStoreContract(
  { describe, test },
  {
    async open() {
      const folder = await mkdtemp(join(tmpdir(), 'json-applications-'))
      return {
        store: jsonFileApplications({ path: join(folder, 'applications.json') }),
        close: () => rm(folder, { recursive: true }),
      }
    },
  },
)
