import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { wavFile } from '../separation/wav-file.js'
import { expectToTeach } from '../mistakes/table.js'
import { packOnce, root, unpackInto } from './tarball.js'
import { temporaryFolder } from '../temporary-folder.js'

// Each child process compiles the runtime and the network again.
vi.setConfig({ testTimeout: 180_000 })

const folder = temporaryFolder()

beforeAll(() => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  unpackInto(folder, packOnce(), Object.keys(dependencies))
  copyFileSync(join(root, 'test/package/fixtures/separation.mjs'), join(folder, 'separation.mjs'))
})

function node(...args: string[]) {
  return spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
}

describe('the packed tarball without onnxruntime', () => {
  test('separates a song on the command line, and says how it would be faster', () => {
    writeFileSync(join(folder, 'song.wav'), wavFile({ tag: 1, bits: 16, data: Buffer.alloc(4 * 44_100, 1) }))
    const { status, stdout, stderr } = node('node_modules/stemwork/dist/cli/main.js', 'separate', 'song.wav')
    expect(status, stderr).toBe(0)
    expect(readdirSync(join(folder, 'song-stems')).sort()).toEqual(['accompaniments.wav', 'vocals.wav'])
    expect(stdout).toContain('The networks run on WebAssembly')
    expect(stdout).toContain('npm install onnxruntime-node')
  })

  test('says what is missing if the native library is requested', () => {
    const { status, stderr } = node(
      'node_modules/stemwork/dist/cli/main.js',
      'separate',
      'song.wav',
      '--runtime',
      'native',
    )
    expect(status).toBe(1)
    expectToTeach({ what: 'runtime', says: [/onnxruntime-node/, /npm install onnxruntime-node/] }, stderr)
  })

  test('runs the jobs of a host', () => {
    const { stdout, stderr } = node('separation.mjs')
    expect(stdout, stderr).toBe('SUCCEEDED vocals accompaniments\n')
  })

  test('passes doctor, which notes the slower runtime', () => {
    const { status, stdout } = node('node_modules/stemwork/dist/cli/main.js', 'doctor', '--json')
    const { findings } = JSON.parse(stdout) as { findings: { check: string }[] }
    expect(status, stdout).toBe(0)
    expect(findings.find(({ check }) => check === 'onnxruntime')).toMatchObject({
      status: 'note',
      found: expect.stringContaining('WebAssembly'),
      todo: expect.stringContaining('npm install onnxruntime-node'),
    })
  })
})
