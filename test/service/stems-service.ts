import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine } from '../../src/create-engine.js'
import type { JobEngine } from '../../src/core/engine/engine.js'
import type { EngineSettings } from '../../src/core/engine/options.js'

/** The engine as hosts create it, with the stems workflow in its real child process, and a file server on loopback. */
export interface StemsService {
  engine: JobEngine
  /** Address of the file server, without a trailing slash. */
  files: string
  /** Leftover files of running jobs. */
  scratch(): Promise<string[]>
  blobs(): Promise<string[]>
  close(): Promise<void>
}

export async function startStemsService(
  answer: (...exchange: Parameters<RequestListener>) => unknown,
  settings: EngineSettings = {},
): Promise<StemsService> {
  const scratchDirectory = await mkdtemp(join(tmpdir(), 'stemwork-service-'))
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const engine = createEngine({
    scratchDirectory,
    fetch: { allow: ['127.0.0.1'] },
    ...settings,
    dispatch: { retryDelayMs: 10, ...settings.dispatch },
  })
  await engine.start()
  return {
    engine,
    files: `http://127.0.0.1:${port}`,
    async scratch() {
      const roots = await readdir(scratchDirectory)
      return (await Promise.all(roots.map((root) => readdir(join(scratchDirectory, root))))).flat()
    },
    async blobs() {
      const keys: string[] = []
      for (const prefix of ['results/', 'uploads/'])
        for await (const { key } of engine.blobs.list(prefix)) keys.push(key)
      return keys
    },
    async close() {
      await engine.close({ timeoutMs: 0 })
      await closed(server)
      await rm(scratchDirectory, { recursive: true, force: true })
    },
  }
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}
