import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect } from 'vitest'
import { root } from '../package/tarball.js'
import { freePort } from '../servers/found-server.js'
import { installsFromRegistry, project, removeProjects, run, serve, stopServers } from './project.js'
import { separateOverHttp } from './separation-over-http.js'

afterEach(stopServers)
afterAll(removeProjects)

/**
 * Creates a project with the packed `create-stemwork` and installs its dependencies, with the tarball of this checkout.
 */
async function create(template: string): Promise<string> {
  const empty = project(`create-${template}`)
  const { stdout } = spawnSync('npm', ['pack', '--silent', '--pack-destination', empty], {
    cwd: join(root, 'create-stemwork'),
    encoding: 'utf8',
  })
  const packed = join(empty, stdout.trim())
  await run(`npm exec --yes --package=${packed} -- create-stemwork my-stems --template ${template}`, empty)
  const place = join(empty, 'my-stems')
  await run('npm install stemwork', place)
  return place
}

describe('a project made by npm create stemwork', () => {
  for (const template of ['express', 'hono']) {
    installsFromRegistry(`separates a song over HTTP (${template})`, async () => {
      const place = await create(template)
      const port = String(await freePort())
      const mount = `http://127.0.0.1:${port}/v1`
      const output = await serve('npm start', place, `${mount}/healthz`, { PORT: port })
      const key = /with API key (\S+)/.exec(output())?.[1]
      expect(key).toBeDefined()
      await separateOverHttp(mount, { publicUrl: mount, key })
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    })
  }

  installsFromRegistry('separates a song without a server (engine)', async () => {
    const place = await create('engine')
    copyFileSync(join(root, 'test/fixtures/audio/stereo.mp3'), join(place, 'song.mp3'))
    const output = await run('npm start song.mp3', place)
    const made = output
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('stems'))
    expect(made).toHaveLength(2)
    expect(made.filter((path) => !existsSync(join(place, path)))).toEqual([])
  })
})
