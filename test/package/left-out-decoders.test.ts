import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { snippetsOf } from '../examples/snippets.js'
import { hasProgram } from '../media/programs.js'
import { fixture } from '../media/test-signal.js'

const local = (name: string) => new URL(`./fixtures/${name}`, import.meta.url)

/**
 * The packages that the documentation says to replace. npm's part was tried with the packed tarball; this test needs no
 * network.
 */
const leftOut = Object.keys(
  (JSON.parse(snippetsOf('docs/licences.md')[0]?.code ?? '{}') as { overrides: Record<string, string> }).overrides,
)

function decode(names: readonly string[], ffmpeg: boolean): Record<string, number | string> {
  const paths = names.map(fixture)
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', local('leave-out.mjs').href, fileURLToPath(local('decode-files.mjs')), ...paths],
    { encoding: 'utf8', env: { ...process.env, LEAVE_OUT: leftOut.join(), FFMPEG: ffmpeg ? '1' : '0' } },
  )
  expect(stderr).toBe('')
  const outcomes = JSON.parse(stdout) as Record<string, number | string>
  return Object.fromEntries(names.map((name, index) => [name, outcomes[paths[index]!]!]))
}

const needing = ['stereo.m4a', 'stereo.aac', 'stereo.ac3', 'stereo.wma', 'video.mp4']
const others = ['stereo.mp3', 'stereo.opus', 'vorbis.ogg', 'video.webm', 'video.mkv', 'video.avi', 'stereo.flac']

describe('without the decoders that the documentation leaves out', () => {
  test('all of them under a GPL or LGPL by their manifests are named', () => {
    const manifests = leftOut.map(
      (name) =>
        JSON.parse(readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8')) as {
          license: string
        },
    )
    expect(leftOut).toHaveLength(5)
    for (const { license } of manifests) expect(license).toMatch(/GPL/)
  })

  test('their formats are refused with a message, and all others decode as before', () => {
    const outcomes = decode([...needing, ...others], false)
    for (const name of needing)
      expect(outcomes[name]).toMatch(/^BAD_INPUT unsupported_format The file is \w+ .* left out .* ffmpeg allowed/)
    for (const name of others) expect(outcomes[name]).toBeGreaterThan(40_000)
  })

  test.skipIf(!hasProgram('ffmpeg'))('ffmpeg replaces them if it is allowed', () => {
    const outcomes = decode(needing, true)
    for (const name of needing) expect(outcomes[name]).toBeGreaterThan(40_000)
  })
})
