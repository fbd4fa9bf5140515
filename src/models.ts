export * from './core/separation/models/index.js'
export { type PresetSettings, presetWorkflow } from './core/separation/workflow/preset-workflow.js'
