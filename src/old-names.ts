import { type Renamed, renamed } from './core/engine/errors.js'

// Exports of the root before 0.2. Remove them in 0.3.

export const inlineRunner = renamed('inlineRunner', "inlineRunner of 'stemwork/testing'")
export const localQueue = renamed('localQueue', "memoryQueue of 'stemwork/memory'")
export const stems4Workflow = renamed('stems4Workflow', 'stemsWorkflow({ stems: 4 })')
export const stemsWorkflowOf = renamed('stemsWorkflowOf', 'stemsWorkflow({ id, name, description, stems, model })')
export const stripeMeterEvent = renamed('stripeMeterEvent', 'the lines in docs/usage.md')

type OfAdapter = Renamed<"the type of this name of 'stemwork/adapter'">

export type Backlog = OfAdapter
export type BlobEntry = OfAdapter
export type BlobSource = OfAdapter
export type BlobStat = OfAdapter
export type ByteRange = OfAdapter
export type Claimable = OfAdapter
export type CreateAllOptions = OfAdapter
export type CreateOptions = OfAdapter
export type DeliverablePage = OfAdapter
export type DocumentStore = OfAdapter
export type DocumentWrite = OfAdapter
export type DueReason = OfAdapter
export type JobPage = OfAdapter
export type KeptPart = OfAdapter
export type KeptStep = OfAdapter
export type Ledger = OfAdapter
export type OutputFile = OfAdapter
export type PutOptions = OfAdapter
export type QueueSubscription = OfAdapter
export type RunCheckpoint = OfAdapter
export type RunOptions = OfAdapter
export type RunSteps = OfAdapter
export type Span = OfAdapter
export type SpanAttributes = OfAdapter
export type SpanOrder = OfAdapter
export type StepResult = OfAdapter
export type StepState = OfAdapter
export type StoredDocument = OfAdapter
export type WorkLimits = OfAdapter
export type WorkOrder = OfAdapter
export type WorkProgress = OfAdapter
export type WorkResult = OfAdapter
export type EngineEventName = Renamed<'keyof EngineEvents'>
export type EngineOptions = Renamed<"JobEngine['options']">
export type PracticeSettings = Renamed<'NonNullable<Parameters<typeof practiceWorkflow>[0]>'>
export type StripeMeterEvent = Renamed<'the lines in docs/usage.md'>
export type StripeMeterOptions = Renamed<'the lines in docs/usage.md'>
