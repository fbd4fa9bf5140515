import { renamed } from './core/engine/errors.js'

export * from './core/models/index.js'
export { type PresetSettings, presetWorkflow } from './core/workflows/separation/preset-workflow.js'

// Names from before 0.2. Remove them in 0.3.
export const modelNames = renamed('modelNames', 'listModels()')
export const modelPreset = renamed('modelPreset', 'listPresets()')
export const modelsOfPreset = renamed('modelsOfPreset', 'models and next of listPresets()')
export const requireModel = renamed('requireModel', 'resolveModel(name)')
