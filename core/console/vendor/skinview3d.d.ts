// What the console uses of skinview3d, whose bundle sets globalThis.skinview3d.
export {};

declare global {
  namespace skinview3d {
    class SkinViewer {
      constructor(options: { canvas: HTMLCanvasElement; width: number; height: number; renderPaused: boolean });
      readonly renderer: { forceContextLoss(): void };
      readonly controls: { enableZoom: boolean; addEventListener(type: "change", listener: () => void): void };
      readonly playerWrapper: { rotation: { y: number } };
      readonly playerObject: { backEquipment: "cape" | "elytra" | null; readonly skin: { modelType: "slim" | "default"; setOuterLayerVisible(isVisible: boolean): void } };
      readonly globalLight: { intensity: number };
      readonly cameraLight: { intensity: number; decay: number; position: { set(x: number, y: number, z: number): void } };
      animation: object | null;
      renderPaused: boolean;
      autoRotate: boolean;
      autoRotateSpeed: number;
      loadSkin(sheet: HTMLCanvasElement, options: { model: "slim" | "default" }): void;
      loadCape(sheet: HTMLCanvasElement | null, options?: { backEquipment: "cape" | "elytra" }): void;
      setSize(width: number, height: number): void;
      render(): void;
      dispose(): void;
    }
    class IdleAnimation {}
    class WalkingAnimation {}
    class RunningAnimation {}
  }
}
