import type { TracerProvider } from '@opentelemetry/api'
import { createEngine, type Tracing } from 'stemwork'
import { openTelemetry } from 'stemwork/opentelemetry'
import { expectType } from './expect-type.js'

declare const tracerProvider: TracerProvider
expectType<Tracing>()(openTelemetry())
createEngine({ tracing: openTelemetry({ tracerProvider }) })

// @ts-expect-error: a provider of tracers, not its name
openTelemetry({ tracerProvider: 'default' })
