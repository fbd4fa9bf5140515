// Which tests run together. Files in none of these lists need servers, child processes or audio: `npm test` runs them
// with all others except the daily ones.

/** Rules of the engine and stores in memory: no server, no audio. `npm run test:unit`. */
export const unit = [
  'test/unit/**/*.test.ts',
  'test/engine/**/*.test.ts',
  'test/fetch/**/*.test.ts',
  'test/testing/**/*.test.ts',
  'test/contract/**/{memory,memory-queue,suite}.test.ts',
]

/**
 * Servers, pages, commands, audio and small networks; nothing that stops a server, measures memory or loads the
 * machine.
 */
export const shared = [
  'test/audio/{analysis,beat-model,harmony,key,loudness-meter,practice,tempo-and-pitch}.test.ts',
  'test/notes/*.test.ts',
  'test/{client,mcp}/**/*.test.ts',
  'test/browser/*.test.ts',
  'test/cli/{as,audio,batch,batch-progress,completion,configuration,deployment-urls}.test.ts',
  'test/cli/{doctor-servers,evaluate,heap-room,jobs,keys,limits,live,machine,models}.test.ts',
  'test/cli/{progress-line,recommended-model,result-names,schedule,usage,use}.test.ts',
  // Shared, because the library that drives a browser takes most of a second to load.
  'test/console/!(recording).test.ts',
  'test/console/page/*.test.ts',
  'test/examples/kubernetes.test.ts',
  'test/package/{left-out-decoders,loaded-modules,published-files}.test.ts',
  'test/mistakes/{deployment,embedded,http,program}.test.ts',
  'test/service/{bad-input,growing-stems}.test.ts',
  'test/contract/*/{application-limits,blob-folder,bullmq*,keyv-durability,local-files,moved-files,quota-days}.test.ts',
  'test/contract/*/{postgres-*,s3-engine,s3-server,sqlite,sqlite-file}.test.ts',
  'test/http/*/!(abuse|all-job-events|fuzz|mounts|steps).test.ts',
  'test/media/!(audio-memory|ffmpeg|hostile-files|kernels|threaded-encoder).test.ts',
  'test/models/{archives,best-model,model-service,pull}.test.ts',
  'test/separation/{ensemble*,evaluation,htdemucs,live,manifest,mdx,pipeline,presets,roformer}.test.ts',
  'test/separation/{open-sizes,resume,scnet,scores,spleeter,umx,unusable-audio,wav}.test.ts',
]

/** Rules for sources and types beyond the compiler and the linter. `npm run test:rules`. */
export const rules = ['test/architecture/**/*.test.ts', 'test/package/types.test.ts']

/**
 * Tests that take minutes, need a package registry, large weights, the Python packages of other programs, or two more
 * builds of the package, or compare runtimes. `npm run test:daily`.
 */
export const daily = [
  'test/package/pack.test.ts',
  'test/console/recording.test.ts',
  'test/simulation/{defects,more-histories}.test.ts',
  'test/contract/long-outage.test.ts',
  'test/platforms/**/*.test.ts',
  'test/models/htdemucs-service.test.ts',
  'test/service/runtimes.test.ts',
  'test/separation/{peers,museval}.test.ts',
]

/** Tests of more than ten seconds each, or three among unit tests. They start first, so that workers end together. */
export const longest = [
  'test/examples/snippets.test.ts',
  'test/console/browser.test.ts',
  'test/console/pages.test.ts',
  'test/console/lost-connection.test.ts',
  'test/cli/serve.test.ts',
  'test/cli/dev.test.ts',
  'test/separation/embedded-model.test.ts',
  'test/separation/reference.test.ts',
  'test/contract/stores/postgres.test.ts',
  'test/cli/separate.test.ts',
  'test/separation/resume.test.ts',
  'test/contract/silent-servers.test.ts',
  'test/media/audio-memory.test.ts',
  'test/crash/crash.test.ts',
  'test/console/operator.test.ts',
  'test/console/together.test.ts',
  'test/console/job-options.test.ts',
  'test/cli/jobs.test.ts',
  'test/contract/stores/keyv.test.ts',
  'test/contract/stores/keyv-servers.test.ts',
  'test/audio/loudness-meter.test.ts',
  'test/console/docs.test.ts',
  'test/cli/batch.test.ts',
  'test/unit/webhooks/outbox.test.ts',
  'test/contract/suite.test.ts',
  'test/engine/dispatch/preemption.test.ts',
  'test/engine/dispatch/claiming.test.ts',
]
