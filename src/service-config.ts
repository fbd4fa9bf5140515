// Generated from the options of `serve` and `worker` by scripts/configuration.mjs: npm run docs
import type { EngineSettings } from './core/engine/options.js'
import type { HandlerSettings } from './http/options.js'

/**
 * Contents of the configuration file of the command line, such as `stemwork.config.ts`.
 *
 * @example
 * import type { ServiceConfig } from 'stemwork'
 * export default { port: 9000, console: true } satisfies ServiceConfig
 */
export interface ServiceConfig {
  /** Address to listen on. Default: 127.0.0.1, which only this machine can reach. */
  host?: string
  /** Port to listen on, 0 for a free one. Default: 8080. */
  port?: number
  /** Folder in which jobs, files and keys survive restarts. Default: nothing survives. */
  data?: string
  /** Jobs and applications: memory:, sqlite:<path>, postgres://...[?schema=<name>], redis://... (Keyv). */
  store?: string
  /**
   * How workers are woken: memory: (this process only), postgres: (the Postgres of --store, and its default),
   * postgres://... (a direct address, if --store goes through a pooler) or redis://...[?prefix=<name>] (BullMQ;
   * needs a Postgres store).
   */
  queue?: string
  /** Files: file:<folder> or s3://<bucket>[/<prefix>][?endpoint=<url>&region=<name>]. */
  blobs?: string
  /** Accept jobs but let `stemwork worker` nodes run them (needs --store postgres://...). */
  apiOnly?: boolean
  /** ES module with your own workflows, JSON file with compositions of known workflows, or a folder of such files. */
  workflows?: string | readonly string[]
  /**
   * Offer a workflow under another id, for example
   * music-ai/stems-vocals-accompaniment=service/stems-vocals-accompaniment.
   */
  aliases?: string | readonly string[]
  /** Address of the service as clients see it, for links. With no path, /v1 is added. */
  publicUrl?: string
  /**
   * Take addresses of the service and of clients from X-Forwarded-Proto, -Host, -Prefix and -For. Only behind a
   * proxy that sets these headers itself.
   */
  trustProxy?: boolean
  /** Origin of web pages that may call the service, such as https://app.example.org; * is any. */
  cors?: string | readonly string[]
  /**
   * A key for clients, of 16 or more characters. Several share one application, "default", with its jobs; "stemwork
   * keys create" makes others. Prefer STEMWORK_API_KEYS, which does not appear in process lists. Default: a key is
   * created and shown once.
   */
  apiKeys?: string | readonly string[]
  /**
   * Serve /v1/operator, a page for viewing and controlling all applications, protected by this key of 16 or more
   * characters. Prefer STEMWORK_OPERATOR_KEY, which does not appear in process lists.
   */
  operatorKey?: string
  /** Serve /metrics, for Prometheus, without a key. */
  metrics?: boolean
  /** Serve /v1/console, a page for uploading songs and listening to stems. */
  console?: boolean
  /**
   * Serve /v1/live, a WebSocket that separates what plays, for up to n streams at a time, each of which takes up to
   * 60 % of a core (needs ws).
   */
  live?: number
  /** Serve /mcp, the tools for agents (Model Context Protocol over HTTP; needs @modelcontextprotocol/sdk). */
  mcp?: boolean
  /** Allow input URLs that lead to this machine or its network. */
  allowPrivateInputs?: boolean
  /**
   * Model to use: a name from "stemwork models list", a manifest (.json), or "best" for the best one that was
   * pulled. Default: embedded.
   */
  model?: string
  /** Processors for a separation. Default: all but one. */
  threads?: number
  /** What runs the network. If it is not available, the CPU is used, with a warning. Default: cpu. */
  provider?: 'cpu' | 'cuda' | 'coreml' | 'dml'
  /**
   * What loads the network: the native library of onnxruntime-node, or WebAssembly, which needs no other package.
   * Default: STEMWORK_RUNTIME, or auto, the native library if it is there.
   */
  runtime?: 'auto' | 'native' | 'wasm'
  /** Use the ffmpeg on the PATH for formats that the package cannot decode, such as FLV or WMV videos. */
  ffmpeg?: boolean
  /** A model that a job may choose with params.model. */
  allowedModels?: string | readonly string[]
  /** Also offer service/stems-4 (vocals, drums, bass, other) with this model, for example htdemucs. */
  stems4?: string
  /** A model that finds the beats for service/analyze: beat-this-small. */
  beats?: string
  /**
   * Answer to the question that the first run at a terminal asks: whether to download the recommended model and use
   * it instead of the bundled one. Default: the answer that was given, or no.
   */
  recommendedModel?: 'yes' | 'no'
  /** Record traces with OpenTelemetry. Set up its SDK with NODE_OPTIONS="--import <file>" (needs @opentelemetry/api). */
  traces?: boolean
  /**
   * How long running jobs may take to finish after the first Ctrl-C; with --data, the rest continue after the next
   * start. Default: 10.
   */
  grace?: number
  /** How log lines are written: for people, or as JSON objects. Default: text. */
  logFormat?: 'text' | 'json'
  /** Log more. */
  verbose?: boolean
  /** Number of jobs to run at a time. Default: 1; a separation uses all processors but one. */
  concurrency?: number
  /**
   * What this worker has, for example gpu, or how much, for example gpuMemory=24. It takes only jobs whose needs it
   * meets.
   */
  labels?: string | readonly string[]
  /** Run one job, then exit: 0 if it succeeded or none was waiting, 1 if it failed. */
  once?: boolean
  /** Run jobs until none is waiting, then exit. */
  drain?: boolean
  /** Seconds after the last heartbeat of a worker until another worker takes over its jobs. Default: 30. */
  lease?: number
  /** Address of the health port. Default: 127.0.0.1. */
  healthHost?: string
  /** Answers /healthz, /readyz and /metrics on this port (0: a free one). Default: none. */
  healthPort?: number
  /** Options of `createEngine`. */
  engine?: Pick<EngineSettings, 'limits' | 'retention' | 'quota' | 'policies' | 'inputs' | 'checkpoints'>
  /** Options of `createHandler`. */
  handler?: Pick<HandlerSettings, 'limits' | 'links' | 'rateLimits'>
}
