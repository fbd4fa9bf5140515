// What is mutated, and the tests that have to notice, nearest first: those of the behaviour that need no servers.
const engine = ['test/unit', 'test/contract/memory.test.ts', 'test/engine']
const stores = ['test/unit', 'test/contract/memory.test.ts']
const auth = ['test/unit', 'test/http/keys.test.ts', 'test/http/wrong-keys.test.ts', 'test/http/ended-keys.test.ts']
const dsp = ['test/unit', 'test/media/resample.test.ts', 'test/media/segment.test.ts', 'test/media/stft.test.ts']

export const folders = [
  { folder: 'src/core/engine/job', tests: engine },
  { folder: 'src/core/engine/dispatch', tests: engine },
  { folder: 'src/core/engine/batch', tests: engine },
  { folder: 'src/adapters/stores/shared', tests: stores },
  { folder: 'src/http/auth', tests: auth },
  { folder: 'src/core/media/dsp', tests: dsp },
]
