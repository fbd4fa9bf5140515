import { describe, expect, test } from 'vitest'
import { violations } from './borders.js'
import { readSources, SourceTree } from './source-tree.js'

const sources = readSources()

test('the sources keep to the borders of the architecture', () => {
  expect(violations(new SourceTree(sources))).toEqual([])
})

test.each([
  ['stemwork', 'index.ts'],
  ['stemwork/adapter', 'adapter/index.ts'],
  ['stemwork/contract', 'contract/index.ts'],
])("what a host loads with import '%s' reaches no native code and no decoder", (_, entry) => {
  const tree = new SourceTree(sources)
  const reached = tree.reachableFrom(entry)
  const heavy = /^(onnxruntime-|audio-decode|@audio\/|@echogarden\/|libsql|@aws-sdk\/|pg$|bullmq|keyv)/
  const loaded = tree.imports.filter(({ from, typeOnly, lazy }) => reached.has(from) && !typeOnly && !lazy)
  expect(loaded.filter(({ to }) => heavy.test(to))).toEqual([])
})

describe('a planted forbidden import is found:', () => {
  const cases: [from: string, to: string, why: RegExp][] = [
    ['core/engine/dispatch/attempt/attempt.ts', '../../../models/stems.js', /knows no workflow/],
    ['core/media/decode/open-audio.ts', '../../models/session/session.js', /knows no network/],
    ['core/models/registry.ts', '../workflows/separation/separate.js', /know none/],
    ['core/workflows/loudness/loudness-module.ts', '../transcode/transcode-workflow.js', /does not import another one/],
    ['core/workflows/separation/separate.ts', '../../engine/engine.js', /what a workflow is/],
    ['core/workflows/separation/separate.ts', '../../engine/ports/job-store.js', /what a workflow is/],
    ['core/workflows/loudness/loudness-module.ts', '../../models/session/session.js', /load no network/],
    [
      'core/workflows/analysis/beat-network/beat-network.ts',
      '../../../media/decode/open-audio.js',
      /reads and writes no audio/,
    ],
    ['core/engine/engine.ts', '../../adapters/memory.js', /core never imports adapters/],
    ['core/engine/engine.ts', '../../http/handler.js', /core never imports/],
    ['adapters/stores/memory/memory-jobs.ts', '../../../core/engine/engine.js', /adapters know only/],
    ['adapters/stores/memory/memory-jobs.ts', '../sqlite/index.js', /does not import another/],
    ['adapter/index.ts', '../adapters/stores/memory/memory-jobs.js', /what adapters share/],
    ['adapter/index.ts', '../core/engine/engine.js', /what adapters share/],
    ['contract/suite.ts', '../adapters/memory.js', /contract suites know only/],
    ['client/client.ts', '../core/engine/errors.js', /depends on nothing/],
    ['console/app.tsx', '../http/schemas.js', /public interface/],
    ['browser/on-device.ts', '../core/engine/engine.js', /without its engine/],
    ['http/handler.ts', '../browser/index.js', /nothing imports browser/],
    ['browser/index.ts', 'node:fs', /browsers have no Node.js/],
    ['core/media/dsp/kernels/kernel.ts', 'node:fs/promises', /browsers have no Node.js/],
    ['core/media/encode/pcm-writer.ts', './local-file.js', /local-file.ts imports node:fs.*no Node.js/],
    ['mcp/job-tools.ts', '../core/engine/engine.js', /by way of the client/],
    ['http/handler.ts', '../core/engine/dispatch/dispatcher.js', /public types/],
    ['http/handler.ts', '../cli/main.js', /nothing imports cli/],
    ['http/handler.ts', 'express', /frameworks are never imported/],
    ['core/engine/engine.ts', 'tsyringe', /known in one file/],
    ['core/media/decode/open-audio.ts', 'mediabunny', /hosts do not have it/],
    ['http/handler.ts', '@opentelemetry/api', /tracing is a port/],
    ['opentelemetry/open-telemetry.ts', '../core/engine/engine.js', /implements the port/],
    ['core/engine/errors.ts', './engine.js', /files import each other/],
    ['core/engine/job/job.ts', '../dispatch/sweep/sweep.js', /folders import each other/],
    ['console/mixer/lane.tsx', './mixer.js', /files import each other/],
  ]
  for (const [from, to, why] of cases) {
    test(`${from} imports ${to}`, () => {
      const text = sources.get(from)
      expect(text).toBeDefined()
      const planted = new Map(sources).set(from, `import '${to}'\n${text}`)
      expect(violations(new SourceTree(planted)).some((line) => why.test(line))).toBe(true)
    })
  }
})
