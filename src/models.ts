export * from './core/models/index.js'
export { type PresetSettings, presetWorkflow } from './core/workflows/separation/preset-workflow.js'
