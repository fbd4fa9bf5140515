import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'
import { root } from '../package/tarball.js'
import { installsFromRegistry, project, removeProjects, run } from './project.js'

afterAll(removeProjects)

const host = `
import { createEngine, defineWorkflow, StemworkError } from 'stemwork'
import { createClient } from 'stemwork/client'
import { expressMount } from 'stemwork/express'
import { fsBlobs } from 'stemwork/fs'
import { createHandler } from 'stemwork/http'
import { sqliteStores } from 'stemwork/sqlite'
import { z } from 'zod'
export * as browser from 'stemwork/browser'
export * as live from 'stemwork/live'
export * as models from 'stemwork/models'

const workflow = defineWorkflow({
  id: 'service/none',
  name: 'None',
  description: '',
  params: z.object({ inputUrl: z.url() }),
  outputs: {},
  stages: [{ name: 'none', run: async ({ inputs }) => void inputs.inputUrl.bytes }],
})
const { jobs, applications } = sqliteStores({ path: 'jobs.db' })
const engine = createEngine({ workflows: [workflow], jobs, applications, blobs: fsBlobs({ directory: 'blobs' }) })
expressMount(createHandler(engine))
createClient({ baseUrl: 'http://localhost', apiKey: 'key' })
export const failed = (error: unknown): boolean => StemworkError.is(error)
// @ts-expect-error: options are checked by this compiler
createEngine({ workflows: 'none' })
`

installsFromRegistry(
  'the oldest TypeScript that the page names takes the types, with those of all packages checked',
  async () => {
    const page = readFileSync(join(root, 'docs/platforms.md'), 'utf8')
    const oldest = /\*\*TypeScript\*\* (\d\.\d) or newer/.exec(page)?.[1]
    expect(oldest).toBeDefined()
    const place = project('typescript', { 'host.mts': host })
    await run('npm install stemwork', place)
    await run(`npm install --ignore-scripts typescript@~${oldest} @types/node@20`, place)
    await run('npx tsc --noEmit --strict --target es2022 --module nodenext --types node host.mts', place)
  },
)
